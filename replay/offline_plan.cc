#include "replay/offline_plan.h"

#include <algorithm>

#include "planner/portfolio.h"
#include "replay/planning.h"

namespace reprise::replay {

absl::StatusOr<OfflinePlan> PlanFound(const profiler::FoundIteration& found, double seconds) {
  const PlanRequest request = MakeRequest(found.iteration, {});
  OfflinePlan plan;
  plan.period = request.iteration.period;
  plan.persistent = std::ranges::count_if(found.iteration.slots, &profiler::Slot::persistent);
  if (request.problem.buffers.empty()) return plan;
  plan.rounds = plan.period / found.iteration.period;
  planner::Budget budget;
  budget.seconds = seconds;
  const absl::StatusOr<planner::Solution> solution = planner::Solve(request.problem, budget);
  if (!solution.ok()) return solution.status();
  for (size_t i = 0; i < request.slot_of.size(); ++i) {
    const planner::Buffer& buffer = request.problem.buffers[i];
    const auto slot = request.slot_of[i] % static_cast<uint32_t>(found.iteration.period);
    plan.blocks.push_back({.begin = buffer.lower.count(),
                           .length = buffer.upper - buffer.lower,
                           .offset = solution->placement.offsets[i],
                           .size = found.iteration.slots[slot].bytes,
                           .event = found.event_of_slot[slot]});
    if (buffer.upper > Tick(plan.period)) plan.live_at_cut += plan.blocks.back().size;
  }
  plan.slab = solution->placement.slab;
  plan.lower_bound = solution->lower_bound;
  plan.proven_optimal = solution->proven_optimal;
  return plan;
}

}  // namespace reprise::replay
