#include "planner/divide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/stretches.h"
#include "planner/window.h"

namespace reprise::planner {
namespace {

constexpr int kAttempts = 64;  // a stretch; their set is one word
constexpr uint64_t kAll = ~uint64_t{0};
constexpr int kTrials = 12;
constexpr int kFirstTries = 3;  // at a stretch that comes out as high as no other
constexpr double kFar = 0.03;
constexpr int kTrialShare = 8;  // the trials cost at most this part of the first round

// Found to do well on several lifetimes of real models, between them.
constexpr Classes kProven[] = {
    {.per_octave = 1, .exponent = 0.17, .by_lifetime = true},
    {.per_octave = 2.8, .phase = 0.43, .exponent = 0.1},
    {.per_octave = 4, .phase = 0.25},
    {.per_octave = 0.6, .phase = 0.5, .exponent = 0.34, .by_lifetime = true},
    {.per_octave = 1, .phase = 0.5, .by_lifetime = true},
};

// The attempts that a stretch can be given, and what they reached.
class Attempts {
 public:
  Attempts(std::span<const Solver> members, uint64_t seed) : members_(members) {
    std::mt19937_64 random(seed);
    const auto share = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    classes_.assign(std::begin(kProven), std::end(kProven));
    while (members_.size() + classes_.size() < kAttempts) {
      const double per_octave = std::exp2(4 * share() - 1);
      const double phase = share();
      const double exponent = std::max(0.0, share() - 0.4);
      classes_.push_back({per_octave, phase, exponent, share() < 0.5});
    }
  }

  // Solves the instance of `search` by attempt `a`; `load` is the instance's largest load. False if stopped.
  bool Run(int a, Search& search, int64_t load, std::string_view name) {
    const int members = static_cast<int>(members_.size());
    if (a < members) {
      members_[a].begin(search, name)();
    } else {
      const std::vector<int32_t> order = SortedBy(classes_[a - members], search.instance());
      std::vector<int64_t> offsets;
      const auto outcome =
          FirstFit(search.instance(), search.memory()).Place(order, Search::kNothing, search, offsets);
      if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, name, order);
    }
    if (search.best_slab() == Search::kNothing) return false;
    excess_[a] += static_cast<double>(search.best_slab()) / static_cast<double>(load) - 1;
    ++runs_[a];
    return true;
  }

  // The one not in the set `tried` that did best so far, or the first that never ran.
  int Best(uint64_t tried) const {
    int best = Fresh();
    double least = std::numeric_limits<double>::max();
    for (int a = 0; a < kAttempts; ++a) {
      if (runs_[a] == 0 || (tried >> a & 1) != 0 || excess_[a] / runs_[a] >= least) continue;
      best = a;
      least = excess_[a] / runs_[a];
    }
    return best;
  }
  // The first that never ran, or kAttempts.
  int Fresh() const { return static_cast<int>(std::find(runs_, runs_ + kAttempts, 0) - runs_); }

 private:
  const std::span<const Solver> members_;
  std::vector<Classes> classes_;
  double excess_[kAttempts] = {};
  int runs_[kAttempts] = {};
};

class Division {
 public:
  Division(Search& search, std::string_view name, std::span<const Solver> members, std::vector<int32_t> cuts)
      : search_(search),
        instance_(search.instance()),
        name_(name),
        attempts_(members, search.seed()),
        stretches_(instance_, std::move(cuts)),
        states_(stretches_.count()),
        offsets_(instance_.pinned) {
    const std::vector<int64_t> load = LoadOfSlots(instance_);
    for (int32_t k = 0; k < stretches_.count(); ++k) {
      const Range time = stretches_.time(k);
      states_[k].load =
          std::max<int64_t>(1, *std::max_element(load.begin() + time.begin, load.begin() + time.end));
    }
  }

  // False when there is nothing more to try.
  bool Run() {
    if (!begun_) {
      begun_ = PlaceShared() && Begin();
      if (!begun_) return !search_.cancelled();
      search_.Offer(offsets_, name_);
    }
    const bool more = Lower();
    search_.Offer(offsets_, name_);
    return more;
  }

 private:
  struct State {
    int64_t load = 0;                // the largest of the stretch
    int64_t top = Search::kNothing;  // of its free buffers
    uint64_t tried = 0;              // attempts
  };

  // Buffers that several stretches share, around those that are pinned. False if stopped, which where there is
  // no placement yet only a cancel does.
  bool PlaceShared() {
    std::vector<int32_t> free, pinned;
    for (int32_t i : stretches_.shared()) (instance_.is_free(i) ? free : pinned).push_back(i);
    const Window window = Extract(instance_, {0, instance_.slots}, free, pinned, offsets_);
    Search search(window.instance, 0, search_);
    std::vector<int64_t> offsets;
    const std::vector<int32_t> order = SortedBy(Order::kCrowdLifetime, window.instance);
    const auto outcome =
        FirstFit(window.instance, search.memory()).Place(order, Search::kNothing, search, offsets);
    if (outcome != FirstFit::Outcome::kComplete) return false;
    for (size_t k = 0; k < offsets.size(); ++k) offsets_[window.buffers[k]] = offsets[k];
    return true;
  }

  // A first placement: the trials on the stretch with the largest load, and what proved best there on all
  // others. False if stopped.
  bool Begin() {
    std::vector<int32_t> by_load(stretches_.count());
    std::iota(by_load.begin(), by_load.end(), 0);
    std::stable_sort(by_load.begin(), by_load.end(),
                     [&](int32_t a, int32_t b) { return states_[a].load > states_[b].load; });
    const State& largest = states_[by_load.front()];
    const int trials = std::min(stretches_.count() / kTrialShare, kTrials);
    for (int trial = 0; trial < trials && largest.top > search_.target(); ++trial) {
      Try(by_load.front(), attempts_.Fresh());
    }
    for (int32_t k : by_load) {
      const State& state = states_[k];
      for (int tries = 0; tries < kFirstTries && IsFarAbove(state, largest); ++tries) {
        if (search_.cancelled()) return false;
        Try(k, attempts_.Best(state.tried));
      }
      if (state.top == Search::kNothing) return false;
    }
    return true;
  }

  static bool IsFarAbove(const State& state, const State& largest) {
    return static_cast<double>(state.top) > (1 + kFar) * static_cast<double>(largest.top) ||
           state.top == Search::kNothing;
  }

  // The highest stretch gets the next attempt, until there is none left for it: then false.
  bool Lower() {
    std::priority_queue<std::pair<int64_t, int32_t>> highest;
    for (int32_t k = 0; k < stretches_.count(); ++k) highest.emplace(states_[k].top, k);
    while (!search_.Stop(1)) {
      const auto [top, k] = highest.top();
      const uint64_t tried = states_[k].tried;
      if (top <= search_.target() || tried == kAll) return false;
      highest.pop();
      Try(k, attempts_.Best(tried));
      highest.emplace(states_[k].top, k);
    }
    return true;
  }

  void Try(int32_t k, int attempt) {
    const Window window =
        Extract(instance_, stretches_.time(k), stretches_.inside(k), stretches_.across(k), offsets_);
    State& state = states_[k];
    Search search(window.instance, search_.target(), search_);
    if (!attempts_.Run(attempt, search, state.load, name_)) return;
    state.tried |= uint64_t{1} << attempt;
    if (search.best_slab() >= state.top) return;
    state.top = search.best_slab();
    for (size_t i = 0; i < stretches_.inside(k).size(); ++i) offsets_[window.buffers[i]] = search.best()[i];
  }

  Search& search_;
  const Instance& instance_;
  const std::string_view name_;
  Attempts attempts_;
  const Stretches stretches_;
  std::vector<State> states_;  // by stretch
  std::vector<int64_t> offsets_;
  bool begun_ = false;
};

}  // namespace

Turn BeginDivide(Search& search, std::string_view name, std::span<const Solver> members, StretchSize size) {
  std::vector<int32_t> cuts = CutWhereQuiet(search.instance(), size.least, size.most);
  if (cuts.size() <= 2) return members.front().begin(search, name);
  return [division = std::make_shared<Division>(search, name, members, std::move(cuts))] {
    return division->Run();
  };
}

}  // namespace reprise::planner
