#include "replay/planning.h"

#include <algorithm>
#include <utility>

#include "planner/portfolio.h"
#include "planner/validator.h"
#include "replay/crossings.h"
#include "replay/ranges.h"

namespace reprise::replay {

PlanRequest MakeRequest(profiler::Iteration iteration, const std::vector<Obstacle>& obstacles) {
  PlanRequest request;
  request.problem.period = iteration.period;
  for (size_t i = 0; i < iteration.slots.size(); ++i) {
    const profiler::Slot& slot = iteration.slots[i];
    if (slot.persistent || slot.length > iteration.period) continue;
    planner::Buffer buffer;
    buffer.lower = Tick(static_cast<int64_t>(i));
    buffer.upper = buffer.lower + std::max<int64_t>(1, slot.length);
    buffer.size = RoundUp(slot.bytes, kUnit);
    buffer.alignment = std::max(slot.alignment, kUnit);
    request.problem.buffers.push_back(buffer);
    request.slot_of.push_back(static_cast<uint32_t>(i));
  }
  for (const Obstacle& obstacle : obstacles) {
    planner::Buffer buffer;
    buffer.lower = Tick(0);
    buffer.upper = Tick(iteration.period);
    buffer.size = obstacle.bytes;
    buffer.pinned = obstacle.offset;
    request.problem.buffers.push_back(buffer);
  }
  request.iteration = std::move(iteration);
  return request;
}

void Plan(const PlanRequest& request, double seconds, Candidate& candidate) {
  planner::Budget budget;
  budget.seconds = seconds;
  budget.cancel = &candidate.cancel;
  absl::StatusOr<planner::Solution> solution = planner::Solve(request.problem, budget);
  candidate.status = solution.status();
  if (solution.ok()) candidate.status = planner::CheckPlacement(request.problem, solution->placement);
  if (candidate.status.ok()) {
    ServingPlan& plan = candidate.plan;
    for (const profiler::Slot& slot : request.iteration.slots) {
      plan.slots.push_back({.bytes = slot.bytes, .stream = slot.stream, .offset = Offset(-1)});
    }
    for (size_t i = 0; i < request.slot_of.size(); ++i) {
      const Offset offset = solution->placement.offsets[i];
      plan.slots[request.slot_of[i]].offset = offset;
      plan.end = std::max(plan.end, offset + request.problem.buffers[i].size);
    }
    std::vector<Stream> freed_on;
    for (const profiler::Slot& slot : request.iteration.slots) freed_on.push_back(slot.freed_on);
    const std::vector<bool> crossings = FindCrossings(plan, freed_on);
    for (size_t i = 0; i < crossings.size(); ++i) plan.slots[i].crosses = crossings[i];
    plan.slab = solution->placement.slab;
    plan.lower_bound = solution->lower_bound;
    candidate.matcher = std::make_unique<Matcher>(plan);
  }
  candidate.ready.store(true, std::memory_order_release);
}

}  // namespace reprise::replay
