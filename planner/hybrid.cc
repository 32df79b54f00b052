#include "planner/hybrid.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/part.h"
#include "planner/skyline.h"

namespace reprise::planner {
namespace {

// Of the target. Below the least one, the skyline costs more than it brings on real instances; above the
// largest, too little is left to decide.
constexpr double kShares[] = {1e-3, 3e-3, 3e-4, 1e-4, 0};
constexpr size_t kCheapSplits = 3;

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

  void Run() {
    MakeSplits();
    for (int round = 0; failed_ < kTriesUntilGivingUp; ++round) {
      for (size_t i = 0; i < splits_.size(); ++i) {
        // With noise, the splits that cost the most have their turn less often.
        if (round % 2 == 1 && i >= kCheapSplits) break;
        for (const Rank& rank : kRanks) {
          if (search_.Stop(1)) return;
          ++failed_;
          Try(splits_[i], rank, round);
          if (!rules_.several_ranks) break;
        }
        if (!rules_.several_shares) break;
      }
      if (!rules_.noise) return;
    }
  }

 private:
  // Equal ones once.
  void MakeSplits() {
    const Instance& instance = search_.instance();
    const std::vector<int32_t> order = SortedBy(Order::kSizeClass, instance);
    for (double share : kShares) {
      std::vector<int32_t> large;
      std::vector<int32_t> small;
      for (int32_t buffer : order) {
        const bool is_large =
            static_cast<double>(instance.size[buffer]) >= share * static_cast<double>(search_.target());
        (is_large ? large : small).push_back(buffer);
      }
      bool seen = large.empty() && share > 0;
      for (const auto& split : splits_) seen |= split->part.buffers.size() == large.size();
      if (!seen) splits_.push_back(std::make_unique<Split>(instance, large, std::move(small)));
    }
  }

  // Where the target is out of reach, aiming at it makes the skyline wait for nothing until it must give in,
  // and what it then does is worse than aiming at a little less than what is there.
  int64_t Goal(int round, int64_t limit) const {
    if (!rules_.look_ahead) return kUnreachable;
    return rules_.relax_goal && round % 3 == 2 && limit != Search::kNothing ? limit : search_.target();
  }

  void Try(std::unique_ptr<Split>& split, const Rank& rank, int round) {
    RankBuffers(*split, rank, round == 0 ? 0 : kNoise);
    const int64_t best = search_.best_slab();
    const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
    const int64_t goal = Goal(round, limit);
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
  std::vector<std::unique_ptr<Split>> splits_;
  int failed_ = 0;
  std::vector<double> keys_;
  std::vector<int32_t> order_;
  std::vector<int64_t> offsets_;
};

}  // namespace

absl::Status Hybrid(Search& search, std::string_view name) { return Hybrid(search, name, {}); }

absl::Status Hybrid(Search& search, std::string_view name, const HybridRules& rules) {
  HybridSearch(search, name, rules).Run();
  return absl::OkStatus();
}

}  // namespace reprise::planner
