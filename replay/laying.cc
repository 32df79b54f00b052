#include "replay/laying.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/validator.h"
#include "replay/stream_lag.h"

namespace reprise::replay {
namespace {

// A plan that is above what it needs room for by more than this part of it is none. What is free in it would be needed elsewhere
// all the time, and granules be moved for nearly every request: of a job with random lifetimes, all placed by a plan 54 % above
// its bound, it made a run of five times as long. The arena's best fit does better, and what is planned later may, too.
constexpr int64_t kMostGapParts = 4;
// By this part of it, and it is looked whether it would need fewer granules in a range of its own; by as much fewer.
constexpr int64_t kPartsToMove = 64;

// Of a plan so large a part comes besides, when there is just the memory for it.
constexpr int64_t kPartsUnplanned = 64;

// Less of a lag where it takes too much, and rather some for whoever is in step than any of it for none.
constexpr LagRules kWaysToLag[] = {
    {.parts = 2, .apart = true},  {.parts = 3, .apart = true},  {.parts = 4, .apart = true},
    {.parts = 6, .apart = true},  {.parts = 8, .apart = true},  {.parts = 2, .apart = false},
    {.parts = 4, .apart = false}, {.parts = 8, .apart = false},
};

planner::Placement PlacementOf(const PlanRequest& request, const Lagged& lagged,
                               const planner::Placement& of_lagged) {
  planner::Placement placement = {.offsets = {}, .slab = of_lagged.slab};
  for (const uint32_t place : lagged.place_of) placement.offsets.push_back(of_lagged.offsets[place]);
  for (size_t b = request.slot_of.size(); b < request.problem.buffers.size(); ++b)
    placement.offsets.push_back(*request.problem.buffers[b].pinned);
  return placement;
}

// How many granules the buffers from `first` on lie in, whenever that is.
int64_t GranulesOf(const planner::Problem& problem, const std::vector<Offset>& offsets, size_t first,
                   Bytes granule) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (size_t b = first; b < problem.buffers.size(); ++b) {
    const Bytes begin = offsets[b] - Offset(0);
    runs.emplace_back(begin / granule, RoundUp(begin + problem.buffers[b].size, granule) / granule);
  }
  std::ranges::sort(runs);
  int64_t granules = 0;
  int64_t end = 0;
  for (const auto& [run_begin, run_end] : runs) {
    granules += std::max<int64_t>(0, run_end - std::max(run_begin, end));
    end = std::max(end, run_end);
  }
  return granules;
}

// Whether there is memory for so much, and a little for what comes unplanned.
bool CanBeHad(Bytes bytes, const PlanRequest& request) {
  return bytes + Bytes(bytes.count() / kPartsUnplanned) <= request.most_to_be_had;
}

// A placement in which streams need not wait for one another; nullopt where one stream does all, or that takes too much of what is
// `held`, obstacles and all, or more than there is.
std::optional<planner::Placement> SolveWithLag(const PlanRequest& request, Bytes held,
                                               const planner::Budget& budget, const Solver& solve) {
  const Bytes needed = planner::HeightOfLoad(request.problem);
  const auto is_much = [&](Bytes height) { return IsMuchForLag(height - needed, held + request.besides); };
  bool has_apart = true;
  for (const LagRules rules : kWaysToLag) {
    if (!rules.apart && !has_apart) break;  // the same as before
    const auto lagged = WithLag(request.problem, request.iteration.slots, request.slot_of, rules);
    if (!lagged.has_value()) return std::nullopt;
    if (rules.apart) has_apart = lagged->has_apart;
    const Bytes height = planner::HeightOfLoad(lagged->problem);
    if (is_much(height) || !CanBeHad(height, request)) continue;
    const absl::StatusOr<planner::Solution> solution = solve(lagged->problem, budget);
    if (!solution.ok()) return std::nullopt;
    planner::Placement placement = PlacementOf(request, *lagged, solution->placement);
    const int64_t granules = GranulesOf(request.problem, placement.offsets, 0, request.granule);
    if (!is_much(placement.slab) && CanBeHad(request.granule * granules, request)) return placement;
  }
  return std::nullopt;
}

struct Solved {
  planner::Placement placement;
  Bytes lower_bound;
  Bytes for_lag;  // of the placement
};

absl::StatusOr<Solved> SolveFor(const PlanRequest& request, Bytes held, const planner::Budget& budget,
                                const Solver& solve) {
  if (auto lagged = request.keeps_lag ? SolveWithLag(request, held, budget, solve) : std::nullopt) {
    const Bytes for_lag = lagged->slab - planner::HeightOfLoad(request.problem);
    return Solved{*std::move(lagged), planner::LowerBound(request.problem), for_lag};
  }
  absl::StatusOr<planner::Solution> solution = solve(request.problem, budget);
  if (!solution.ok()) return solution.status();
  return Solved{std::move(solution->placement), solution->lower_bound, Bytes(0)};
}

absl::StatusOr<Solved> SolveAndCheck(const PlanRequest& request, Bytes held, const planner::Budget& budget,
                                     const Solver& solve) {
  absl::StatusOr<Solved> solution = SolveFor(request, held, budget, solve);
  if (!solution.ok()) return solution;
  // Whatever the planner had by then: who told it to stop does not wait for an answer.
  if (budget.cancel->load(std::memory_order_relaxed))
    return absl::CancelledError("planning was told to stop");
  if (absl::Status checked = planner::CheckPlacement(request.problem, solution->placement); !checked.ok())
    return checked;
  return solution;
}

ServingPlan PlanOf(const PlanRequest& request, const Solved& solved) {
  ServingPlan plan = PlanOf(request, solved.placement, solved.lower_bound);
  plan.for_lag = solved.for_lag;
  return plan;
}

// The lowest multiple of `step` from which on no obstacle lies in `height`. They are in the order of their offsets.
Offset LowestBeside(const PlanRequest& request, Bytes height, Bytes step) {
  Offset base;
  for (size_t b = request.slot_of.size(); b < request.problem.buffers.size(); ++b) {
    const planner::Buffer& obstacle = request.problem.buffers[b];
    if (base + height > *obstacle.pinned)
      base = std::max(base, RoundUp(*obstacle.pinned + obstacle.size, step));
  }
  return base;
}

// The plan in a range of its own, where it and the obstacles lie in fewer granules so than as `around` has it.
std::optional<ServingPlan> LayBeside(const PlanRequest& request, const planner::Budget& budget,
                                     const Solver& solve, const planner::Placement& around) {
  const bool has_obstacles = request.problem.buffers.size() > request.slot_of.size();
  const Bytes needed = planner::HeightOfLoad(request.problem);
  if (!request.may_lie_beside || !has_obstacles || (around.slab - needed) * kPartsToMove <= needed)
    return std::nullopt;
  PlanRequest alone = request;
  alone.problem.buffers.resize(request.slot_of.size());
  for (planner::Buffer& buffer : alone.problem.buffers) buffer.previous.reset();
  const int64_t obstacles =
      GranulesOf(request.problem, around.offsets, request.slot_of.size(), request.granule);
  alone.most_to_be_had -= request.granule * obstacles;
  const absl::StatusOr<Solved> solution = SolveAndCheck(alone, needed, budget, solve);
  if (!solution.ok()) return std::nullopt;
  const int64_t now = GranulesOf(request.problem, around.offsets, 0, request.granule);
  const int64_t beside =
      obstacles + GranulesOf(alone.problem, solution->placement.offsets, 0, request.granule);
  if ((now - beside) * kPartsToMove < now) return std::nullopt;
  ServingPlan plan = PlanOf(alone, *solution);
  MoveTo(LowestBeside(request, plan.end - Offset(0), StepFor(plan, request.granule)), plan);
  if (plan.end > request.addresses) return std::nullopt;
  plan.alone = true;
  return plan;
}

}  // namespace

absl::StatusOr<ServingPlan> Lay(const PlanRequest& request, const planner::Budget& budget,
                                const Solver& solve) {
  const Bytes load = planner::HeightOfLoad(request.problem);
  const absl::StatusOr<Solved> solution = SolveAndCheck(request, load, budget, solve);
  if (!solution.ok()) return solution.status();
  if (auto beside = LayBeside(request, budget, solve, solution->placement)) return *std::move(beside);
  // What finds no hole between obstacles raises the bound, but does not need more room.
  const Bytes needed =
      solution->lower_bound > planner::LowerBound(request.problem) ? solution->lower_bound : load;
  // Of several lanes the bound does not know what it costs that they share nothing.
  if ((solution->placement.slab - solution->for_lag - needed) * kMostGapParts > needed &&
      planner::HasOneLane(request.problem))
    return absl::ResourceExhaustedError("the plan is far above what it needs room for");
  return PlanOf(request, *solution);
}

}  // namespace reprise::replay
