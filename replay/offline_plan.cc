#include "replay/offline_plan.h"

#include "planner/portfolio.h"
#include "replay/planning.h"

namespace reprise::replay {

absl::StatusOr<OfflinePlan> PlanFound(const profiler::FoundIteration& found, double seconds) {
  const PlanRequest request = MakeRequest(found.iteration, {});
  OfflinePlan plan;
  plan.period = found.iteration.period;
  plan.persistent = static_cast<int64_t>(found.iteration.slots.size() - request.slot_of.size());
  if (request.problem.buffers.empty()) return plan;
  planner::Budget budget;
  budget.seconds = seconds;
  const absl::StatusOr<planner::Solution> solution = planner::Solve(request.problem, budget);
  if (!solution.ok()) return solution.status();
  for (size_t i = 0; i < request.slot_of.size(); ++i) {
    const planner::Buffer& buffer = request.problem.buffers[i];
    const uint32_t slot = request.slot_of[i];
    plan.blocks.push_back({.begin = buffer.lower.count(),
                           .length = buffer.upper - buffer.lower,
                           .offset = solution->placement.offsets[i],
                           .size = found.iteration.slots[slot].bytes,
                           .event = found.event_of_slot[slot]});
  }
  plan.slab = solution->placement.slab;
  plan.lower_bound = solution->lower_bound;
  plan.proven_optimal = solution->proven_optimal;
  return plan;
}

}  // namespace reprise::replay
