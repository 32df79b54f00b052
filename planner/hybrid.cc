#include "planner/hybrid.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/part.h"
#include "planner/skyline.h"

namespace reprise::planner {
namespace {

// Which buffers count as large: those of at least some share of the target. Below the least one, the skyline
// costs more than it brings on real instances; above the largest, too little is left to decide. Where it says
// so also those that live through a crowd: at some moment of their life no more than kLeftFree of the share is
// left free. There even small holes are too many, and what comes last finds nothing else.
struct Large {
  double share;
  bool crowded;
};
constexpr Large kLarge[] = {{1e-3, false}, {3e-3, false}, {1e-3, true}, {3e-4, false}, {3e-3, true},
                            {1e-4, false}, {3e-4, true},  {1e-4, true}, {0, false}};
constexpr double kLeftFree = 0.1;

// Large ones, of all splits together: each takes some hundred bytes, on either thread.
constexpr size_t kMostInSplits = 2'000'000;

// A buffer ranks by lifetime^a x size^b.
struct Rank {
  double lifetime;
  double size;
};
constexpr Rank kRanks[] = {{1, 1}, {1, 0}, {1, 0.3}};

// Of the larger exponent: ranks are multiplied by up to e^+-kNoise.
constexpr double kNoise = 0.3;

// In a row, without a better placement.
constexpr int kTriesUntilGivingUp = 1000;

// A height far above all others that leaves room for sums.
constexpr int64_t kUnreachable = Search::kNothing / 4;

// In [-1, 1), the same on every machine (the distributions of <random> are not).
double RandomSign(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; }

// The buffers of at least some share, ready to be laid in many orders, and the others.
struct Split {
  Split(const Instance& whole, const std::vector<int32_t>& large, std::vector<int32_t> small)
      : part(PartOf(whole, large, std::vector<int64_t>(large.size(), Instance::kFree))),
        skyline(part.instance),
        rest(std::move(small)),
        order(large.size()) {}

  Part part;
  Skyline skyline;
  std::vector<int32_t> rest;   // in the order for first-fit
  std::vector<int32_t> order;  // of the part's buffers; scratch
};

class HybridSearch {
 public:
  HybridSearch(Search& search, std::string_view name, const HybridRules& rules)
      : search_(search), name_(name), rules_(rules), first_fit_(search.instance()), random_(search.seed()) {}

  // False when there is nothing more to try. The first turn ends with the tries without noise.
  bool Run() {
    if (splits_.empty()) MakeSplits();
    if (splits_.empty()) return false;
    if (plain_ < pairs()) return TryWithoutNoise() || rules_.noise;
    while (failed_ < kTriesUntilGivingUp) {
      Candidate& next = *std::ranges::min_element(splits_, {}, &Candidate::work);
      const auto ranks = static_cast<int>(this->ranks());
      if (!Try(next, kRanks[next.tries % ranks], 1 + next.tries / ranks)) return true;
      ++next.tries;
    }
    return false;
  }

 private:
  // A split and what was spent on it. With noise, the one on which the least was spent is tried next: a try with
  // a few large ones is cheap and may be made often, one with all buffers costs ten times as much.
  struct Candidate {
    std::unique_ptr<Split> split;
    int64_t work = 0;  // in steps
    int tries = 0;     // with noise
  };

  size_t ranks() const { return rules_.several_ranks ? std::size(kRanks) : 1; }
  size_t pairs() const { return splits_.size() * ranks(); }

  // All pairs of a split and a rank, each by one of the workers. True: the search has stopped.
  bool TryWithoutNoise() {
    for (; plain_ < pairs(); ++plain_) {
      if (static_cast<int>(plain_ % search_.workers()) != search_.worker()) continue;
      if (!Try(splits_[plain_ / ranks()], kRanks[plain_ % ranks()], 0)) return true;
    }
    return false;
  }

  // Equal ones once.
  void MakeSplits() {
    const std::vector<int32_t> order = SortedBy(Classes{}, search_.instance());
    const std::vector<int64_t> crowd = CrowdOf(search_.instance());
    for (const Large& which : kLarge) {
      if (!which.crowded || rules_.crowded) AddSplit(which, order, crowd);
      if (!rules_.several_shares && !splits_.empty()) break;
    }
  }

  void AddSplit(const Large& which, const std::vector<int32_t>& order, const std::vector<int64_t>& crowd) {
    const Instance& instance = search_.instance();
    const auto target = static_cast<double>(search_.target());
    std::vector<int32_t> large;
    std::vector<int32_t> small;
    for (int32_t buffer : order) {
      const bool by_size = static_cast<double>(instance.size[buffer]) >= which.share * target;
      const bool by_crowd = static_cast<double>(crowd[buffer]) >= (1 - kLeftFree * which.share) * target;
      (by_size || (which.crowded && by_crowd) ? large : small).push_back(buffer);
    }
    bool left_out = large.empty() && which.share > 0;
    size_t sum = large.size();
    for (const Candidate& other : splits_) {
      sum += other.split->part.buffers.size();
      left_out |= other.split->part.buffers.size() == large.size() || sum > kMostInSplits;
    }
    if (!left_out) splits_.push_back({std::make_unique<Split>(instance, large, std::move(small))});
  }

  // False: the search has stopped, and the try had no chance.
  bool Try(Candidate& candidate, const Rank& rank, int round) {
    if (search_.Stop(1)) return false;
    const int64_t begin = search_.steps();
    Place(candidate.split, rank, round);
    if (search_.Stop(1)) return false;
    candidate.work += search_.steps() - begin;
    ++failed_;
    return true;
  }

  void Place(std::unique_ptr<Split>& split, const Rank& rank, int round) {
    RankBuffers(*split, rank, round == 0 ? 0 : kNoise);
    const int64_t best = search_.best_slab();
    const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
    const int64_t goal = rules_.look_ahead ? search_.target() : kUnreachable;
    if (split->skyline.Place(split->order, goal, limit, search_, offsets_) != FirstFit::Outcome::kComplete) {
      return;
    }
    order_.clear();
    for (int32_t i : InOrderOfOffsets(split->part.instance, offsets_))
      order_.push_back(split->part.buffers[i]);
    order_.insert(order_.end(), split->rest.begin(), split->rest.end());
    switch (first_fit_.Place(order_, limit, search_, offsets_)) {
      case FirstFit::Outcome::kComplete:
        search_.Offer(offsets_, name_, order_);
        failed_ = 0;
        break;
      case FirstFit::Outcome::kTooHigh:
        if (rules_.promote) Promote(split, first_fit_.too_high());
        break;
      case FirstFit::Outcome::kStopped:
        break;
    }
  }

  // Counts `buffer` as large from now on.
  void Promote(std::unique_ptr<Split>& split, int32_t buffer) {
    const auto place = std::find(split->rest.begin(), split->rest.end(), buffer);
    if (place == split->rest.end()) return;
    split->rest.erase(place);
    split->part.buffers.push_back(buffer);
    split = std::make_unique<Split>(search_.instance(), split->part.buffers, std::move(split->rest));
  }

  void RankBuffers(Split& split, const Rank& rank, double noise) {
    const Instance& instance = split.part.instance;
    const double amplitude = noise * std::max(rank.lifetime, rank.size);
    keys_.resize(instance.buffers());
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      keys_[i] = rank.lifetime * std::log(instance.length(i)) +
                 rank.size * std::log(static_cast<double>(instance.size[i]));
      if (noise > 0) keys_[i] += amplitude * RandomSign(random_);
      split.order[i] = i;
    }
    std::sort(split.order.begin(), split.order.end(), [&](int32_t a, int32_t b) {
      if (keys_[a] != keys_[b]) return keys_[a] > keys_[b];
      return instance.size[a] != instance.size[b] ? instance.size[a] > instance.size[b] : a < b;
    });
  }

  Search& search_;
  const std::string_view name_;
  const HybridRules rules_;
  FirstFit first_fit_;
  std::mt19937_64 random_;
  std::vector<Candidate> splits_;
  size_t plain_ = 0;  // pairs that were tried without noise, or left to other workers
  int failed_ = 0;
  std::vector<double> keys_;
  std::vector<int32_t> order_;
  std::vector<int64_t> offsets_;
};

}  // namespace

Turn BeginHybrid(Search& search, std::string_view name, const HybridRules& rules) {
  return [hybrid = std::make_shared<HybridSearch>(search, name, rules)] { return hybrid->Run(); };
}

Turn BeginHybrid(Search& search, std::string_view name) {
  return BeginHybrid(search, name,
                     {.look_ahead = search.on("hybrid-look-ahead"),
                      .several_shares = search.on("hybrid-several-shares"),
                      .several_ranks = search.on("hybrid-several-ranks"),
                      .crowded = search.on("hybrid-crowded"),
                      .noise = search.on("hybrid-noise"),
                      .promote = search.on("hybrid-promote")});
}

}  // namespace reprise::planner
