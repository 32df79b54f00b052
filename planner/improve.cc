#include "planner/improve.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "planner/first_fit.h"
#include "planner/orders.h"

namespace reprise::planner {
namespace {

// Tried on the lifetimes of real models: a few hundred rounds until a restart serve small and large ones.
constexpr int kRoundsUntilRestart = 500;
constexpr int kRoundsUntilGivingUp = 20 * kRoundsUntilRestart;

// A share in (0, 1], the same on every machine (the distributions of <random> are not).
double RandomShare(std::mt19937_64& random) { return static_cast<double>((random() >> 11) + 1) * 0x1p-53; }

class SqueakyWheel {
 public:
  SqueakyWheel(Search& search, std::string_view name)
      : search_(search), name_(name), first_fit_(search.instance()), random_(search.seed()) {
    place_.resize(search.instance().buffers());
  }

  bool Run() {
    if (search_.best_slab() == Search::kNothing) {
      order_ = SortedBy(Order::kSize, search_.instance());
      Place(Search::kNothing);
    }
    while (failed_ < kRoundsUntilGivingUp) {
      if (search_.Stop(1)) return true;
      if (failed_ % kRoundsUntilRestart == 0) StartFromBest();
      std::sort(order_.begin(), order_.end(),
                [&](int32_t a, int32_t b) { return place_[a] != place_[b] ? place_[a] < place_[b] : a < b; });
      switch (Place(search_.best_slab() - 1)) {
        case FirstFit::Outcome::kComplete:
          failed_ = 0;
          break;
        case FirstFit::Outcome::kStopped:
          return true;
        case FirstFit::Outcome::kTooHigh:
          ++failed_;
          place_[first_fit_.too_high()] *= RandomShare(random_);
      }
    }
    return false;
  }

 private:
  FirstFit::Outcome Place(int64_t limit) {
    const auto outcome = first_fit_.Place(order_, limit, search_, offsets_);
    if (outcome == FirstFit::Outcome::kComplete) search_.Offer(offsets_, name_, order_);
    return outcome;
  }

  void StartFromBest() {
    order_ = search_.best_order();
    for (size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = static_cast<double>(i + 1);
  }

  Search& search_;
  const std::string_view name_;
  FirstFit first_fit_;
  std::mt19937_64 random_;
  std::vector<int32_t> order_;
  std::vector<double> place_;  // by buffer: where it stands in the order; fractions after moves
  std::vector<int64_t> offsets_;
  int failed_ = 0;  // rounds in a row
};

}  // namespace

Turn BeginImprove(Search& search, std::string_view name) {
  return [wheel = std::make_shared<SqueakyWheel>(search, name)] { return wheel->Run(); };
}

}  // namespace reprise::planner
