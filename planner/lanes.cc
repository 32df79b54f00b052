#include "planner/lanes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/crossings.h"
#include "planner/first_fit.h"
#include "planner/interval_lists.h"
#include "planner/orders.h"
#include "planner/problem.h"
#include "planner/search.h"
#include "planner/stopwatch.h"

namespace reprise::planner {
namespace {

// How much higher than the lowest placement one that avoids crossings may be.
constexpr double kLimits[] = {0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};

// Of the time: what is left for avoiding crossings.
constexpr double kShareOfAvoiding = 0.1;
constexpr double kMostAvoiding = 1;  // seconds beyond the rest, if they are beyond the time
constexpr int64_t kListsBetweenLooks = 1000;

// The order of first-fit where no other one is tried: of the first answers the one that is mostly sound.
constexpr Classes kClasses{.per_octave = 2, .phase = 0.5, .by_lifetime = true};

Problem Shared(const Problem& problem) {
  Problem shared = problem;
  shared.reuse = Reuse::kAllowed;
  return shared;
}

// Those that need the most come first.
std::vector<Lane> ByNeed(std::vector<Lane> lanes) {
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const Lane& a, const Lane& b) { return a.max_live > b.max_live; });
  return lanes;
}

// The lanes laid so far, each on top of those before.
class Tower {
 public:
  explicit Tower(const Problem& problem) : problem_(problem) {
    placement_.offsets.resize(problem.buffers.size(), kOutside);
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      if (!problem.buffers[i].pinned) continue;
      placement_.offsets[i] = *problem.buffers[i].pinned;
      obstacles_.push_back(problem.buffers[i]);
    }
  }

  // The problem of one lane above those laid: its own buffers, in the order of the lane, then obstacles.
  Problem Above(const Lane& lane) {
    Problem above{.period = problem_.period, .capacity = problem_.capacity};
    for (const size_t i : lane.buffers) above.buffers.push_back(problem_.buffers[i]);
    AddObstacles(above);
    if (placement_.slab > Bytes(0)) above.buffers.push_back(FloorOf(above));
    return above;
  }

  // `offsets` begins with those of the lane, in its order.
  void Put(const Lane& lane, std::span<const Offset> offsets) {
    for (size_t k = 0; k < lane.buffers.size(); ++k) Put(lane.buffers[k], offsets[k]);
  }

  // Each of `lanes` by one first-fit, in a single pass over them all.
  void PutAtOnce(std::span<const Lane> lanes) {
    Problem rest{.period = problem_.period};
    std::vector<size_t> index, lane_of;  // of each buffer: in the problem, in `lanes`
    for (size_t k = 0; k < lanes.size(); ++k) {
      for (const size_t i : lanes[k].buffers) {
        rest.buffers.push_back(problem_.buffers[i]);
        index.push_back(i);
        lane_of.push_back(k);
      }
    }
    AddObstacles(rest);
    const Instance instance = Compress(rest);
    std::vector<int32_t> order = SortedBy(kClasses, instance);
    std::ranges::stable_sort(order, {}, [&](int32_t buffer) { return lane_of[buffer]; });
    FirstFit first_fit(instance);
    first_fit.Clear();
    Bytes base;
    std::optional<size_t> lane;
    for (const int32_t buffer : order) {
      if (lane != lane_of[buffer]) base = placement_.slab;
      lane = lane_of[buffer];
      const int64_t offset = first_fit.LowestFree(buffer, base.count());
      first_fit.Insert(buffer, offset);
      Put(index[buffer], Offset(offset));
    }
  }

  Placement Take() && { return std::move(placement_); }

 private:
  void Put(size_t buffer, Offset offset) {
    placement_.offsets[buffer] = offset;
    placement_.slab = std::max(placement_.slab, offset + problem_.buffers[buffer].size - Offset(0));
  }

  // What of the obstacles is above the lanes laid; the others are forgotten.
  void AddObstacles(Problem& above) {
    const Offset base(placement_.slab.count());
    std::erase_if(obstacles_, [&](const Buffer& o) { return *o.pinned + o.size <= base; });
    for (const Buffer& whole : obstacles_) {
      Buffer& obstacle = above.buffers.emplace_back(whole);
      if (*whole.pinned >= base) continue;
      obstacle.pinned = base;
      obstacle.size = *whole.pinned + whole.size - base;
    }
  }

  // Whatever the lanes laid have taken, at all times.
  Buffer FloorOf(const Problem& above) const {
    Buffer floor{.lower = Tick(0), .upper = Tick(problem_.period.value_or(1)), .size = placement_.slab};
    floor.pinned = Offset(0);
    if (problem_.period) return floor;
    for (const Buffer& buffer : above.buffers) {
      floor.lower = std::min(floor.lower, buffer.lower);
      floor.upper = std::max(floor.upper, buffer.upper);
    }
    return floor;
  }

  const Problem& problem_;
  Placement placement_;
  std::vector<Buffer> obstacles_;  // those that end above the lanes laid, if not some more
};

// First-fit that would rather go higher, up to a limit, than where another lane has been or will be.
class AvoidingFirstFit {
 public:
  explicit AvoidingFirstFit(const Problem& problem)
      : problem_(problem), instance_(Compress(problem)), first_fit_(instance_) {
    for (const Buffer& buffer : problem.buffers) {
      if (HasLane(buffer)) lane_index_.try_emplace(buffer.lane, static_cast<int32_t>(lane_index_.size()));
    }
  }

  // Places in `order`; false when a buffer would end above `limit`, or once `stop` says so.
  bool Place(const std::vector<int32_t>& order, int64_t limit, const std::function<bool()>& stop,
             Placement& placement) {
    first_fit_.Clear();
    taken_ = IntervalLists(static_cast<int32_t>(lane_index_.size()));
    for (const int32_t buffer : order) {
      const int64_t size = instance_.size[buffer];
      const int32_t lane = lane_index_.at(problem_.buffers[buffer].lane);
      int64_t offset = LowestWithoutCrossing(buffer, lane, limit, stop);
      if (stopped_) return false;
      if (offset + size > limit) offset = first_fit_.LowestFree(buffer);
      if (offset + size > limit) return false;
      first_fit_.Insert(buffer, offset);
      taken_.Insert(lane, offset, offset + size);
      placement.offsets[buffer] = Offset(offset);
    }
    return true;
  }

  const Instance& instance() const { return instance_; }
  int64_t steps() const { return asked_; }

 private:
  // Above `limit` any offset will do for an answer; so it will for one that was stopped.
  int64_t LowestWithoutCrossing(int32_t buffer, int32_t lane, int64_t limit,
                                const std::function<bool()>& stop) {
    const int64_t size = instance_.size[buffer];
    const auto lanes = static_cast<int32_t>(lane_index_.size());
    for (int64_t from = 0;;) {
      const int64_t free = first_fit_.LowestFree(buffer, from);
      from = free;
      ++asked_;
      for (int32_t other = 0; other < lanes && from + size <= limit; ++other, ++asked_) {
        if (other == lane) continue;
        IntervalLists::Cursor cursor = taken_.Begin(other);
        from = IntervalLists::Leap(cursor, from, size, instance_.alignment[buffer]);
      }
      if (Stopped(stop) || from == free || from + size > limit) return from;
    }
  }

  bool Stopped(const std::function<bool()>& stop) {
    if (asked_ < next_look_) return stopped_;
    next_look_ = asked_ + kListsBetweenLooks;
    return stopped_ = stopped_ || stop();
  }

  const Problem& problem_;
  const Instance instance_;
  FirstFit first_fit_;
  std::map<int32_t, int32_t> lane_index_;
  IntervalLists taken_{0};  // by lane index: the addresses that its buffers have had at any time
  int64_t asked_ = 0;       // how many of these lists, and the tree, so far
  int64_t next_look_ = 0;   // whether to stop, once so many were asked
  bool stopped_ = false;
};

// Slab plus crossings times price, or the most there is where that is more.
int64_t CostOf(const Problem& problem, Bytes slab, int64_t crossings) {
  int64_t cost = 0;
  const bool overflows = __builtin_mul_overflow(problem.crossing_price.count(), crossings, &cost) ||
                         __builtin_add_overflow(cost, slab.count(), &cost);
  return overflows ? std::numeric_limits<int64_t>::max() : cost;
}

// Keeps whichever costs less; what is within the capacity goes before what is not.
class Cheapest {
 public:
  explicit Cheapest(const Problem& problem) : problem_(problem) {}

  void Offer(Solution solution) {
    const int64_t crossings = CountCrossings(problem_, solution.placement);
    const Bytes slab = solution.placement.slab;
    const std::pair cost(problem_.capacity && slab > *problem_.capacity, CostOf(problem_, slab, crossings));
    if (best_ && cost >= cost_) return;
    cost_ = cost;
    best_ = std::move(solution);
    best_->crossings = crossings;
  }

  Solution Take() && { return *std::move(best_); }

 private:
  const Problem& problem_;
  std::optional<Solution> best_;
  std::pair<bool, int64_t> cost_;  // is it above the capacity, and slab plus price
};

// Offers what avoids crossings without going far above the lowest placement, until `stop` says so. Returns
// the steps that it took.
int64_t OfferAvoiding(const Problem& problem, const Solution& lowest, const std::function<bool()>& stop,
                      Cheapest& cheapest) {
  AvoidingFirstFit avoiding(problem);
  std::vector<int64_t> offsets;
  offsets.reserve(lowest.placement.offsets.size());
  for (const Offset offset : lowest.placement.offsets) offsets.push_back(offset.count());
  const std::vector<int32_t> order = InOrderOfOffsets(avoiding.instance(), offsets);
  Solution between = lowest;
  between.solver = "first-fit-avoiding";
  for (const double more : kLimits) {
    if (stop()) break;
    const int64_t limit =
        static_cast<int64_t>(static_cast<double>(lowest.placement.slab.count()) * (1 + more));
    if (!avoiding.Place(order, limit, stop, between.placement)) continue;
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = between.placement.offsets[i].count();
    between.placement.slab = Bytes(SlabOf(avoiding.instance(), offsets));
    cheapest.Offer(between);
  }
  return avoiding.steps();
}

bool IsCancelled(const Budget& budget) {
  return budget.cancel != nullptr && budget.cancel->load(std::memory_order_relaxed);
}

Budget ShareOf(const Budget& budget, double share) {
  Budget part = budget;
  part.seconds *= share;
  // All of the largest number there is would come back from a double as one more than that.
  if (share < 1 && budget.steps != std::numeric_limits<int64_t>::max())
    part.steps = static_cast<int64_t>(static_cast<double>(budget.steps) * share);
  return part;
}

}  // namespace

absl::StatusOr<Solution> SolveApart(const Problem& problem, const Budget& budget,
                                    const SolveFunction& solve) {
  const Stopwatch stopwatch;
  if (absl::Status status = Validate(problem); !status.ok()) return status;
  if (HasOneLane(problem)) return solve(Shared(problem), budget);  // apart from nobody
  const std::vector<Lane> lanes = ByNeed(LanesOf(problem));
  size_t still_to_come = 0;  // in buffers
  for (const Lane& lane : lanes) still_to_come += lane.buffers.size();
  const size_t buffers = still_to_come;
  Solution whole;
  whole.lower_bound = LowerBound(problem);
  Tower tower(problem);
  // A share of the time is advice to a lane, which gives a first answer whatever it takes; of many lanes
  // these would take many times as long as there is.
  const auto over = [&] { return IsCancelled(budget) || stopwatch.seconds() >= budget.seconds; };
  size_t laid = 0;
  for (; laid < lanes.size() && (laid == 0 || !over()); ++laid) {
    const Lane& lane = lanes[laid];
    Problem above = tower.Above(lane);
    // What a lane leaves of the capacity is for those above it; only the last may be content with what fits,
    // and what another one pays to stay where it was may be what the last one lacks.
    if (&lane != &lanes.back() && above.capacity) {
      above.capacity.reset();
      for (Buffer& buffer : above.buffers) buffer.previous.reset();
    }
    const auto own = static_cast<double>(lane.buffers.size());
    Budget share = ShareOf(budget, own / static_cast<double>(buffers));
    share.seconds = (budget.seconds - stopwatch.seconds()) * own / static_cast<double>(still_to_come);
    const absl::StatusOr<Solution> solution = solve(above, share);
    if (absl::IsDeadlineExceeded(solution.status()) && laid > 0) break;
    if (!solution.ok()) return solution.status();
    tower.Put(lane, solution->placement.offsets);
    still_to_come -= lane.buffers.size();
    whole.solver = solution->solver;
    whole.steps += solution->steps;
  }
  if (laid < lanes.size()) {
    // With lanes laid already, the rest is laid as it first comes rather than all given up.
    tower.PutAtOnce(std::span(lanes).subspan(laid));
    whole.solver = "first-fit";
  }
  whole.placement = std::move(tower).Take();
  whole.proven_optimal = whole.placement.slab == whole.lower_bound;
  whole.seconds = stopwatch.seconds();
  return whole;
}

absl::StatusOr<Solution> SolvePriced(const Problem& problem, const Budget& budget,
                                     const SolveFunction& solve) {
  const Stopwatch stopwatch;
  const Problem shared = Shared(problem);
  if (HasOneLane(problem)) return solve(shared, budget);  // nothing can cross
  absl::StatusOr<Solution> lowest = solve(shared, ShareOf(budget, 0.5));
  if (!lowest.ok()) return lowest;
  const Bytes bound = lowest->lower_bound;
  int64_t steps = lowest->steps;
  Cheapest cheapest(problem);
  absl::StatusOr<Solution> apart;
  try {
    Budget rest = ShareOf(budget, 0.5);
    rest.seconds = std::min(rest.seconds, budget.seconds * (1 - kShareOfAvoiding) - stopwatch.seconds());
    apart = SolveApart(problem, rest, solve);
    if (!apart.ok() && !absl::IsDeadlineExceeded(apart.status())) return apart;
    if (apart.ok()) steps += apart->steps;
    const double until = std::max(budget.seconds, stopwatch.seconds() + kMostAvoiding);
    const auto stop = [&] { return IsCancelled(budget) || stopwatch.seconds() >= until; };
    steps += OfferAvoiding(problem, *lowest, stop, cheapest);
  } catch (const std::bad_alloc&) {  // the lowest is as good as ever
  }
  cheapest.Offer(*std::move(lowest));
  if (apart.ok()) cheapest.Offer(*std::move(apart));
  Solution solution = std::move(cheapest).Take();
  solution.lower_bound = bound;
  solution.steps = steps;
  solution.proven_optimal = solution.placement.slab == bound && solution.crossings == 0;
  solution.seconds = stopwatch.seconds();
  return solution;
}

}  // namespace reprise::planner
