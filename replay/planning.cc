#include "replay/planning.h"

#include <algorithm>
#include <utility>

#include "planner/portfolio.h"
#include "planner/validator.h"
#include "replay/crossings.h"
#include "replay/ranges.h"
#include "replay/stream_order.h"

namespace reprise::replay {

namespace {

// Pins what lies in the way from `base` up, and everything below `base`.
void PinObstacles(const std::vector<Obstacle>& obstacles, Offset base, planner::Problem& problem) {
  const auto pin = [&](Offset begin, Offset end) {
    planner::Buffer buffer;
    buffer.lower = Tick(0);
    buffer.upper = Tick(*problem.period);
    buffer.size = end - begin;
    buffer.pinned = begin;
    problem.buffers.push_back(buffer);
  };
  if (base > Offset(0)) pin(Offset(0), base);
  for (const Obstacle& obstacle : obstacles) {
    const Offset end = obstacle.offset + obstacle.bytes;
    if (end > base) pin(std::max(obstacle.offset, base), end);
  }
}

// Lays the slots of one part into the plan, above what is in it. Its place among the parts says its budget.
absl::Status PlanPart(const PlanRequest& request, const PlanRequest::Part& part, planner::Budget budget,
                      ServingPlan& plan) {
  planner::Problem problem = part.problem;
  PinObstacles(request.obstacles, plan.end, problem);
  const absl::StatusOr<planner::Solution> solution = planner::Solve(problem, budget);
  if (!solution.ok()) return solution.status();
  if (absl::Status checked = planner::CheckPlacement(problem, solution->placement); !checked.ok())
    return checked;
  for (size_t i = 0; i < part.slot_of.size(); ++i) {
    const Offset offset = solution->placement.offsets[i];
    plan.slots[part.slot_of[i]].offset = offset;
    plan.end = std::max(plan.end, offset + problem.buffers[i].size);
  }
  plan.slab = solution->placement.slab;
  plan.lower_bound = solution->lower_bound;
  return absl::OkStatus();
}

void MarkCrossings(const profiler::Iteration& iteration, ServingPlan& plan) {
  std::vector<Stream> freed_on;
  for (const profiler::Slot& slot : iteration.slots) freed_on.push_back(slot.freed_on);
  const std::vector<bool> crossings = FindCrossings(plan, freed_on);
  for (size_t i = 0; i < crossings.size(); ++i) plan.slots[i].crosses = crossings[i];
}

}  // namespace

PlanRequest MakeRequest(profiler::Iteration iteration, std::vector<Obstacle> obstacles) {
  PlanRequest request;
  PlanRequest::Part ordered, synchronous;
  for (size_t i = 0; i < iteration.slots.size(); ++i) {
    const profiler::Slot& slot = iteration.slots[i];
    if (slot.persistent || slot.length > iteration.period) continue;
    planner::Buffer buffer;
    buffer.lower = Tick(static_cast<int64_t>(i));
    buffer.upper = buffer.lower + std::max<int64_t>(1, slot.length);
    buffer.size = RoundUp(slot.bytes, kUnit);
    buffer.alignment = std::max(slot.alignment, kUnit);
    PlanRequest::Part& part = IsEveryStream(slot.stream) ? synchronous : ordered;
    part.problem.buffers.push_back(buffer);
    part.slot_of.push_back(static_cast<uint32_t>(i));
  }
  for (PlanRequest::Part* part : {&ordered, &synchronous}) {
    part->problem.period = iteration.period;
    if (!part->slot_of.empty() || (part == &ordered && synchronous.slot_of.empty())) {
      request.parts.push_back(std::move(*part));
    }
  }
  request.obstacles = std::move(obstacles);
  request.iteration = std::move(iteration);
  return request;
}

void Plan(const PlanRequest& request, double seconds, Candidate& candidate) {
  planner::Budget budget;
  budget.seconds = seconds / static_cast<double>(request.parts.size());
  budget.cancel = &candidate.cancel;
  ServingPlan& plan = candidate.plan;
  for (const profiler::Slot& slot : request.iteration.slots) {
    plan.slots.push_back({.bytes = slot.bytes, .stream = slot.stream, .offset = Offset(-1)});
  }
  for (const PlanRequest::Part& part : request.parts) {
    if (candidate.status.ok()) candidate.status = PlanPart(request, part, budget, plan);
  }
  if (candidate.status.ok()) {
    MarkCrossings(request.iteration, plan);
    candidate.matcher = std::make_unique<Matcher>(plan);
  }
  candidate.ready.store(true, std::memory_order_release);
}

}  // namespace reprise::replay
