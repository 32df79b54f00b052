#include "planner/lanes.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/crossings.h"
#include "planner/first_fit.h"
#include "planner/interval_lists.h"
#include "planner/problem.h"
#include "planner/search.h"

namespace reprise::planner {
namespace {

// How much higher than the lowest placement one that avoids crossings may be.
constexpr double kLimits[] = {0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};

struct Lane {
  int32_t lane;
  int64_t buffers;
  Bytes max_live;
};

bool HasLane(const Buffer& buffer) { return !buffer.pinned && !buffer.outside; }

// The problem of one lane above `base`: everything else is outside, and obstacles are cut off below.
Problem AboveBase(const Problem& problem, int32_t lane, Offset base) {
  Problem above = problem;
  above.reuse = Reuse::kAllowed;
  Buffer floor{.lower = Tick(0), .upper = Tick(problem.period.value_or(1)), .size = base - Offset(0)};
  for (Buffer& buffer : above.buffers) {
    if (!problem.period) {
      floor.lower = std::min(floor.lower, buffer.lower);
      floor.upper = std::max(floor.upper, buffer.upper);
    }
    if (HasLane(buffer)) buffer.outside = buffer.lane != lane;
    if (!buffer.pinned || *buffer.pinned >= base) continue;
    const Offset end = *buffer.pinned + buffer.size;
    buffer.pinned.reset();
    buffer.outside = end <= base;
    if (buffer.outside) continue;
    buffer.pinned = base;
    buffer.size = end - base;
  }
  if (base > Offset(0)) {
    floor.pinned = Offset(0);
    above.buffers.push_back(floor);
  }
  return above;
}

std::vector<Lane> LanesOf(const Problem& problem) {
  std::map<int32_t, int64_t> buffers;
  for (const Buffer& buffer : problem.buffers) {
    if (HasLane(buffer)) ++buffers[buffer.lane];
  }
  std::vector<Lane> lanes;
  for (const auto& [lane, count] : buffers) {
    Problem alone = problem;
    for (Buffer& buffer : alone.buffers) buffer.outside |= !HasLane(buffer) || buffer.lane != lane;
    for (Buffer& buffer : alone.buffers) buffer.pinned.reset();
    lanes.push_back({lane, count, MaxLive(alone)});
  }
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const Lane& a, const Lane& b) { return a.max_live > b.max_live; });
  return lanes;
}

// First-fit that would rather go higher, up to a limit, than where another lane has been or will be.
class AvoidingFirstFit {
 public:
  explicit AvoidingFirstFit(const Problem& problem)
      : problem_(problem), instance_(Compress(problem)), first_fit_(instance_) {
    for (const Buffer& buffer : problem.buffers) {
      if (HasLane(buffer)) lane_index_.try_emplace(buffer.lane, static_cast<int32_t>(lane_index_.size()));
    }
  }

  // Places in `order`; false when a buffer would end above `limit`.
  bool Place(const std::vector<int32_t>& order, int64_t limit, Placement& placement) {
    first_fit_.Clear();
    taken_ = IntervalLists(static_cast<int32_t>(lane_index_.size()));
    for (const int32_t buffer : order) {
      const int64_t size = instance_.size[buffer];
      const int32_t lane = lane_index_.at(problem_.buffers[buffer].lane);
      int64_t offset = LowestWithoutCrossing(buffer, lane);
      if (offset + size > limit) offset = first_fit_.LowestFree(buffer);
      if (offset + size > limit) return false;
      first_fit_.Insert(buffer, offset);
      taken_.Insert(lane, offset, offset + size);
      placement.offsets[buffer] = Offset(offset);
    }
    return true;
  }

  const Instance& instance() const { return instance_; }

 private:
  int64_t LowestWithoutCrossing(int32_t buffer, int32_t lane) {
    for (int64_t from = 0;;) {
      const int64_t free = first_fit_.LowestFree(buffer, from);
      from = free;
      for (int32_t other = 0; other < static_cast<int32_t>(lane_index_.size()); ++other) {
        if (other == lane) continue;
        IntervalLists::Cursor cursor = taken_.Begin(other);
        from = IntervalLists::Leap(cursor, from, instance_.size[buffer], instance_.alignment[buffer]);
      }
      if (from == free) return free;
    }
  }

  const Problem& problem_;
  const Instance instance_;
  FirstFit first_fit_;
  std::map<int32_t, int32_t> lane_index_;
  IntervalLists taken_{0};  // by lane index: the addresses that its buffers have had at any time
};

// Keeps whichever costs less.
class Cheapest {
 public:
  explicit Cheapest(const Problem& problem) : problem_(problem) {}

  void Offer(Solution solution) {
    const int64_t crossings = CountCrossings(problem_, solution.placement);
    const Bytes cost = solution.placement.slab + problem_.crossing_price * crossings;
    if (best_ && cost >= cost_) return;
    cost_ = cost;
    best_ = std::move(solution);
    best_->crossings = crossings;
  }

  Solution Take() && { return *std::move(best_); }

 private:
  const Problem& problem_;
  std::optional<Solution> best_;
  Bytes cost_;
};

Budget ShareOf(const Budget& budget, double share) {
  Budget part = budget;
  part.seconds *= share;
  if (budget.steps != std::numeric_limits<int64_t>::max())
    part.steps = static_cast<int64_t>(static_cast<double>(budget.steps) * share);
  return part;
}

}  // namespace

absl::StatusOr<Solution> SolveApart(const Problem& problem, const Budget& budget,
                                    const SolveFunction& solve) {
  if (absl::Status status = Validate(problem); !status.ok()) return status;
  const std::vector<Lane> lanes = LanesOf(problem);
  int64_t buffers = 0;
  Bytes loads;
  for (const Lane& lane : lanes) {
    buffers += lane.buffers;
    loads += lane.max_live;
  }
  Solution whole;
  whole.placement.offsets.resize(problem.buffers.size(), kOutside);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].pinned) whole.placement.offsets[i] = *problem.buffers[i].pinned;
  }
  whole.lower_bound = std::max(loads, LowerBound(problem));
  for (const Lane& lane : lanes) {
    const Problem above = AboveBase(problem, lane.lane, Offset(whole.placement.slab.count()));
    const double share = static_cast<double>(lane.buffers) / static_cast<double>(buffers);
    absl::StatusOr<Solution> solution = solve(above, ShareOf(budget, share));
    if (!solution.ok()) return solution.status();
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      if (HasLane(problem.buffers[i]) && problem.buffers[i].lane == lane.lane)
        whole.placement.offsets[i] = solution->placement.offsets[i];
    }
    whole.placement.slab = solution->placement.slab;
    whole.solver = solution->solver;
    whole.seconds += solution->seconds;
  }
  whole.proven_optimal = whole.placement.slab == whole.lower_bound;
  return whole;
}

absl::StatusOr<Solution> SolvePriced(const Problem& problem, const Budget& budget,
                                     const SolveFunction& solve) {
  Problem shared = problem;
  shared.reuse = Reuse::kAllowed;
  absl::StatusOr<Solution> lowest = solve(shared, ShareOf(budget, 0.5));
  if (!lowest.ok()) return lowest;
  absl::StatusOr<Solution> apart = SolveApart(problem, ShareOf(budget, 0.5), solve);
  if (!apart.ok()) return apart;
  const Bytes bound = lowest->lower_bound;
  Cheapest cheapest(problem);
  AvoidingFirstFit avoiding(problem);
  std::vector<int64_t> offsets;
  for (const Offset offset : lowest->placement.offsets) offsets.push_back(offset.count());
  const std::vector<int32_t> order = InOrderOfOffsets(avoiding.instance(), offsets);
  Solution between = *lowest;
  between.solver = "first-fit-avoiding";
  for (const double more : kLimits) {
    const int64_t limit =
        static_cast<int64_t>(static_cast<double>(lowest->placement.slab.count()) * (1 + more));
    if (!avoiding.Place(order, limit, between.placement)) continue;
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = between.placement.offsets[i].count();
    between.placement.slab = Bytes(SlabOf(avoiding.instance(), offsets));
    cheapest.Offer(between);
  }
  cheapest.Offer(*std::move(lowest));
  cheapest.Offer(*std::move(apart));
  Solution solution = std::move(cheapest).Take();
  solution.lower_bound = bound;
  solution.proven_optimal = solution.placement.slab == bound && solution.crossings == 0;
  return solution;
}

}  // namespace reprise::planner
