#include "replay/planning.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/exceptions.h"
#include "planner/crossings.h"
#include "planner/problem.h"
#include "replay/laying.h"
#include "replay/ranges.h"
#include "replay/stream_order.h"

namespace reprise::replay {

namespace {

// A plan is wanted before the job has gone on for long, in a round or two: on a fast device an allocation takes
// some 50 us of it. What is to be had by searching on is had by then, nearly: of thirteen cycles of 128 to 1015
// blocks a second in place of 30 ms made one lower by 0.11 %, the others by less.
constexpr double kSecondsABuffer = 50e-6;
constexpr double kLeastSeconds = 0.05;

// A cycle of more rounds is a larger problem and a longer plan: not for less than this part of the places.
constexpr int64_t kFewMorePlaces = 64;

// Ten times the most that a search was seen to do. Under libfaketime a clock may stand still, and a search that nothing
// else ends goes on for ever.
constexpr double kMostStepsPerSecond = 3e8;

double SecondsFor(const planner::Problem& problem, double most) {
  return std::min(most,
                  std::max(kLeastSeconds, kSecondsABuffer * static_cast<double>(problem.buffers.size())));
}

void Pin(const std::vector<Obstacle>& obstacles, Tick lower, Tick upper, planner::Problem& problem) {
  for (const Obstacle& obstacle : obstacles) {
    planner::Buffer buffer;
    buffer.lower = lower;
    buffer.upper = upper;
    buffer.size = obstacle.bytes;
    buffer.pinned = obstacle.offset;
    problem.buffers.push_back(buffer);
  }
}

// A slot more, in which others have their turn.
void AddTurn(const std::vector<Obstacle>& of_others, planner::Problem& problem) {
  const Tick end(*problem.period);
  for (planner::Buffer& buffer : problem.buffers) {
    if (buffer.upper >= end) buffer.upper = buffer.upper + 1;
  }
  Pin(of_others, end, end + 1, problem);
  ++*problem.period;
}

// The bytes of blocks that live for so many rounds, by that number.
using LivingFor = std::array<Bytes, profiler::kMostRounds + 1>;

// What those that live for m rounds need of places in a cycle of n: each has n instances, and a place serves n / m of them,
// rounded down. So in three rounds those that live for two need three places, one for each instance, and in four they need two.
Bytes PlacesIn(int64_t rounds, const LivingFor& living) {
  Bytes places;
  for (int64_t m = 1; m <= profiler::kMostRounds; ++m) {
    const int64_t times = std::max<int64_t>(1, rounds / m);
    places += living[static_cast<size_t>(m)] * ((rounds + times - 1) / times);
  }
  return places;
}

// How many rounds the cycle has: at least as many as the longest block lives for, and of those the fewest in which
// hardly more places are needed than in any other number.
int64_t RoundsFor(const profiler::Iteration& iteration) {
  LivingFor living;
  int64_t longest = 1;
  for (const profiler::Slot& slot : iteration.slots) {
    if (slot.persistent) continue;
    const int64_t rounds = std::max<int64_t>(1, (slot.length + iteration.period - 1) / iteration.period);
    living[static_cast<size_t>(std::min(rounds, profiler::kMostRounds))] += slot.bytes;
    longest = std::max(longest, rounds);
  }
  Bytes fewest = PlacesIn(longest, living);
  for (int64_t rounds = longest + 1; rounds <= kMostRoundsOfAPlan; ++rounds)
    fewest = std::min(fewest, PlacesIn(rounds, living));
  int64_t rounds = longest;
  while ((PlacesIn(rounds, living) - fewest) * kFewMorePlaces > fewest) ++rounds;
  return rounds;
}

// So many rounds of the iteration in a row, as planner::Unrolled has its buffers.
void Repeat(int64_t rounds, PlanRequest& request) {
  profiler::Iteration& iteration = request.iteration;
  const int64_t round = std::exchange(iteration.period, rounds * iteration.period);
  for (int64_t i = round; i < iteration.period; ++i) {
    iteration.slots.push_back(iteration.slots[static_cast<size_t>(i - round)]);
    iteration.slots.back().begin = i;
  }
  const size_t planned = request.slot_of.size();
  for (size_t b = planned; b < static_cast<size_t>(rounds) * planned; ++b)
    request.slot_of.push_back(request.slot_of[b - planned] + static_cast<uint32_t>(round));
}

}  // namespace

void MarkCrossings(std::span<const profiler::Slot> cycle, std::vector<ServingPlan::Slot>& slots) {
  std::vector<planner::Use> uses;
  std::vector<uint32_t> slot_of;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const ServingPlan::Slot& slot = slots[i];
    if (!slot.planned()) continue;
    const Offset end = slot.offset + RoundUp(slot.bytes, kUnit);
    uses.push_back({slot.offset.count(), end.count(), static_cast<uint64_t>(slot.stream),
                    static_cast<uint64_t>(cycle[i].freed_on)});
    slot_of.push_back(i);
  }
  const std::vector<bool> crossings = planner::FindCrossings(uses, /*cyclic=*/true);
  for (size_t k = 0; k < crossings.size(); ++k) slots[slot_of[k]].crosses = crossings[k];
}

void MarkEntries(ServingPlan& plan) {
  const std::vector<profiler::Slot>& cycle = plan.cycle;
  // By how much more is live before each slot than before the one in front of it; then, than at some level that is the
  // same for all.
  std::vector<Bytes> live(cycle.size());
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (cycle[i].persistent) continue;
    live[(i + 1) % cycle.size()] += cycle[i].bytes;
    live[(i + static_cast<size_t>(cycle[i].length)) % cycle.size()] -= cycle[i].bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  const auto [least, most] = std::minmax_element(live.begin(), live.end());
  plan.swing = *most - *least;
  const size_t round = cycle.size() / static_cast<size_t>(RoundsOf(plan));
  const auto reach = static_cast<size_t>(Matcher::ReachOf(static_cast<int64_t>(round)));
  for (size_t i = 0; i < live.size(); ++i)
    plan.slots[i].entry = i % round <= reach || plan.IsLittle(live[i] - *least);
}

planner::Buffer BufferOf(const profiler::Slot& slot, int64_t time) {
  planner::Buffer buffer;
  buffer.lower = Tick(time);
  buffer.upper = buffer.lower + std::max<int64_t>(1, slot.length);
  buffer.size = Footprint(slot.bytes, slot.alignment);
  buffer.alignment = std::max(slot.alignment, kUnit);
  buffer.lane = IsEveryStream(slot.stream) ? 1 : 0;
  return buffer;
}

Offset EndOf(std::span<const profiler::Slot> cycle, std::span<const ServingPlan::Slot> slots) {
  Offset end;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].planned())
      end = std::max(end, slots[i].offset + Footprint(cycle[i].bytes, cycle[i].alignment));
  }
  return end;
}

PlanRequest MakeRequest(profiler::Iteration iteration, const std::vector<Obstacle>& obstacles,
                        const std::vector<OtherPlan>& others) {
  PlanRequest request;
  const int64_t round = iteration.period;
  request.problem.period = round;
  request.problem.reuse = planner::Reuse::kForbidden;
  for (size_t i = 0; i < iteration.slots.size(); ++i) {
    const profiler::Slot& slot = iteration.slots[i];
    if (slot.persistent) continue;
    request.problem.buffers.push_back(BufferOf(slot, static_cast<int64_t>(i)));
    request.slot_of.push_back(static_cast<uint32_t>(i));
  }
  request.iteration = std::move(iteration);
  const int64_t rounds = RoundsFor(request.iteration);
  if (rounds > 1) {
    request.problem = planner::Unrolled(request.problem, static_cast<int32_t>(rounds));
    Repeat(rounds, request);
  }
  const std::vector<Obstacle> of_others = PlacesOfOthers(others, obstacles);
  if (rounds == 1 && !of_others.empty()) AddTurn(of_others, request.problem);
  request.may_lie_beside = of_others.empty() && std::ranges::all_of(others, [](const OtherPlan& other) {
                             return other.plan->begin > Offset(0);
                           });
  Pin(obstacles, Tick(0), Tick(*request.problem.period), request.problem);
  return request;
}

void KeepPlaces(const ServingPlan& had, PlanRequest& request) {
  const std::vector<profiler::Slot>& slots = request.iteration.slots;
  // What outlives its round has its place by where it lies (KeepInPlace).
  if (had.slots.size() != slots.size() || RoundsOf(had) > 1) return;
  for (size_t b = 0; b < request.slot_of.size(); ++b) {
    const uint32_t slot = request.slot_of[b];
    const ServingPlan::Slot& before = had.lasting()[slot];
    if (before.planned() && before.bytes == slots[slot].bytes)
      request.problem.buffers[b].previous = before.offset;
  }
}

Bytes StepFor(const ServingPlan& plan, Bytes granule) {
  Bytes step = granule;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].planned()) step = std::max(step, plan.cycle[i].alignment);
  }
  return step;
}

void MoveTo(Offset base, ServingPlan& plan) {
  for (ServingPlan::Slot& slot : plan.slots) {
    if (slot.planned()) slot.offset = base + (slot.offset - Offset(0));
  }
  plan.begin = base;
  plan.end = base + (plan.end - Offset(0));
}

ServingPlan PlanOf(const PlanRequest& request, const planner::Placement& placement, Bytes lower_bound) {
  ServingPlan plan;
  plan.cycle = request.iteration.slots;
  for (const profiler::Slot& slot : plan.cycle)
    plan.slots.push_back({.bytes = slot.bytes, .stream = slot.stream, .offset = Offset(-1)});
  for (size_t b = 0; b < request.slot_of.size(); ++b)
    plan.slots[request.slot_of[b]].offset = placement.offsets[b];
  plan.end = EndOf(plan.cycle, plan.slots);
  plan.slab = placement.slab;
  plan.lower_bound = lower_bound;
  MarkCrossings(plan.cycle, plan.slots);
  MarkEntries(plan);
  return plan;
}

planner::Budget BudgetOf(double seconds) {
  return {.seconds = seconds, .steps = static_cast<int64_t>(seconds * kMostStepsPerSecond)};
}

void Plan(const PlanRequest& request, double most_seconds, Candidate& candidate, const Solver& solve) {
  planner::Budget budget = BudgetOf(SecondsFor(request.problem, most_seconds));
  budget.cancel = &candidate.cancel;
  const bool completed = Completes([&] {
    absl::StatusOr<ServingPlan> plan = Lay(request, budget, solve);
    candidate.status = plan.status();
    if (plan.ok()) {
      candidate.plan = *std::move(plan);
      candidate.plan.most_to_be_had = request.most_to_be_had;
      candidate.matcher = std::make_unique<Matcher>(candidate.plan);
    }
  });
  // No memory, above all: nothing may leave the planner's thread, and no words can be had.
  if (!completed) candidate.status = absl::Status(absl::StatusCode::kResourceExhausted, "");
  candidate.ready.store(true, std::memory_order_release);
}

}  // namespace reprise::replay
