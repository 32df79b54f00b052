#include "planner/large_first.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/part.h"

namespace reprise::planner {
namespace {

constexpr int64_t kMoves = 6;  // of each large one, on average
constexpr int64_t kLooksPerStep = 16;

// In steps: first-fit costs about half as much for a buffer.
constexpr int64_t kStepsBetweenPlacements = 40;

struct BySize {
  std::vector<int32_t> large;  // and what is pinned
  std::vector<int32_t> small;  // in the order for first-fit
};

BySize DivideBySize(const Instance& instance, double share) {
  const auto area = [&](int32_t i) { return static_cast<double>(instance.size[i]) * instance.length(i); };
  double whole = 0;
  const std::vector<int32_t> by_size = SortedBy(Order::kSize, instance);
  for (int32_t i : by_size) whole += area(i);
  int64_t least = 0;
  double taken = 0;
  for (int32_t i : by_size) {
    if (taken >= share * whole) break;
    taken += area(i);
    least = instance.size[i];
  }
  BySize division;
  for (int32_t i : SortedBy(Order::kCrowdSize, instance)) {
    if (instance.size[i] < least) division.small.push_back(i);
  }
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    const bool is_large = instance.is_free(i) && instance.size[i] >= least;
    if (is_large || instance.is_pinned(i)) division.large.push_back(i);
  }
  return division;
}

std::vector<int64_t> Of(const std::vector<int32_t>& buffers, const std::vector<int64_t>& values) {
  std::vector<int64_t> theirs;
  theirs.reserve(buffers.size());
  for (int32_t i : buffers) theirs.push_back(values[i]);
  return theirs;
}

class LargeFirst {
 public:
  LargeFirst(Search& search, std::string_view name, Turn (*begin)(Search&, std::string_view), BySize division)
      : search_(search),
        name_(name),
        small_(std::move(division.small)),
        part_(PartOf(search.instance(), division.large, Of(division.large, search.instance().pinned))),
        part_search_(part_.instance, LowerBound(part_.instance).count(), search),
        turn_(begin(part_search_, name)),
        first_fit_(search.instance()) {
    const int64_t large = part_.instance.buffers();
    steps_left_ = kMoves * large * large / kLooksPerStep;
  }

  bool Run() {
    while (!search_.Stop(1)) {
      if (part_search_.best_slab() < placed_around_) {
        const bool first = placed_around_ == Search::kNothing;
        if (!PlaceAll() || (first && !done_)) return true;  // the first turn is one placement
      }
      if (done_) return false;
      const int64_t begin = part_search_.steps();
      part_search_.Grant(std::min(steps_left_, kStepsBetweenPlacements * search_.instance().buffers()));
      const bool more = turn_();
      steps_left_ -= part_search_.steps() - begin;
      done_ = !more || steps_left_ <= 0;
    }
    return true;
  }

 private:
  // The small ones around the large ones. False: the search has stopped before all of them lay.
  bool PlaceAll() {
    order_.clear();
    for (int32_t i : part_search_.best_order()) order_.push_back(part_.buffers[i]);
    order_.insert(order_.end(), small_.begin(), small_.end());
    const int64_t best = search_.best_slab();
    const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
    const auto outcome = first_fit_.Place(order_, limit, search_, offsets_);
    if (outcome == FirstFit::Outcome::kStopped) return false;
    if (outcome == FirstFit::Outcome::kComplete) search_.Offer(offsets_, name_, order_);
    placed_around_ = part_search_.best_slab();
    return true;
  }

  Search& search_;
  const std::string_view name_;
  const std::vector<int32_t> small_;
  const Part part_;
  Search part_search_;
  const Turn turn_;
  FirstFit first_fit_;
  int64_t steps_left_;
  int64_t placed_around_ = Search::kNothing;  // the large ones' slab when the small were last put around them
  bool done_ = false;                         // with the large ones
  std::vector<int32_t> order_;                // scratch
  std::vector<int64_t> offsets_;
};

}  // namespace

Turn BeginLargeFirst(Search& search, std::string_view name, Turn (*begin)(Search&, std::string_view),
                     double area) {
  BySize division = DivideBySize(search.instance(), area);
  if (division.small.empty()) return [] { return false; };
  return [those = std::make_shared<LargeFirst>(search, name, begin, std::move(division))] {
    return those->Run();
  };
}

}  // namespace reprise::planner
