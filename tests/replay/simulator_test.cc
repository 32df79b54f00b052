// Why: `simulate` is the promise made before a job is run. Its figures come from the real engine, so these
// tests hold the whole engine to the project's targets on steady jobs: planned from early on, nothing
// overlapping, nothing passed, little reserved.
#include "replay/simulator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

SimulationResult Simulated(const EventScript& script, SimulationOptions options = {}) {
  const auto result = Simulate(script.events(), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(Simulator, ASteadyJobIsPlannedFromItsFourthIteration) {
  EventScript script;
  AppendTraining(script, 8, {.layers = 40});
  const SimulationResult result = Simulated(script);
  EXPECT_EQ(result.counters.period, 120);
  EXPECT_EQ(result.counters.plans, 1);
  EXPECT_EQ(result.counters.first_planned_iteration, 2) << "the second one that is found";
  // 40 weights; an iteration makes 160 requests, 40 of them small; the first also 40 of optimizer state.
  EXPECT_LE(result.counters.first_planned_request, 40 + 160 + 40 + 2 * 160 + 1);
  EXPECT_EQ(result.planned_after_plan, 1.0);
  EXPECT_EQ(result.planned_bytes_after_plan, 1.0);
  EXPECT_EQ(result.counters.conflicts, 0);
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_EQ(result.counters.passed, 0);
}

TEST(Simulator, ASecondRunIsPlannedFromItsFirstRecurringIteration) {
  EventScript script;
  AppendTraining(script, 8, {.layers = 40});
  const SimulationResult result = Simulated(script, {.second_run = true});
  EXPECT_EQ(result.counters.plans_resumed, 1);
  EXPECT_LE(result.counters.first_planned_request, 40 + 160 + 40 + 160);
  EXPECT_EQ(result.planned_bytes_after_plan, 1.0);
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_LE(result.reserved_peak, Simulated(script).reserved_peak);
}

// Each step ends with a temporary, the first one with a block of that size which stays: by sizes alone the cycle begins there.
TEST(Simulator, WhatEndsTheStartIsInNoPlansWayInTheSecondRun) {
  constexpr int64_t kScale = 64 << 10;
  EventScript script;
  for (int step = 0; step < 8; ++step) {
    std::vector<BlockId> activations;
    for (int i = 0; i < 80; ++i) activations.push_back(script.Alloc((i % 5 + 3) * kScale + i * 512));
    while (!activations.empty()) {
      script.Free(script.Alloc(2 * kScale + static_cast<int64_t>(activations.size()) * 1024));
      script.Free(activations.back());
      activations.pop_back();
    }
    for (int i = 0; step == 0 && i < 20; ++i) script.Alloc((i + 1) * kScale);
    const BlockId last = script.Alloc(6 * kScale);
    if (step > 0) script.Free(last);
  }
  const SimulationResult result = Simulated(script, {.second_run = true});
  EXPECT_EQ(result.counters.plans_resumed, 1);
  EXPECT_EQ(result.counters.conflicts, 0);
  EXPECT_EQ(result.planned_bytes_after_plan, 1.0);
}

TEST(Simulator, CountsEveryRequestOnce) {
  EventScript script;
  AppendTraining(script, 8);
  const Counters c = Simulated(script).counters;
  int64_t allocs = 0;
  for (const profiler::Event& event : script.events()) allocs += event.kind == profiler::EventKind::kAlloc;
  EXPECT_EQ(c.requests, allocs);
  EXPECT_EQ(c.planned + c.arena + c.passed, c.requests);
}

TEST(Simulator, LivePeakIsOfRequestedBytes) {
  EventScript script;
  const BlockId a = script.Alloc(100);
  script.Alloc(5000);
  script.Free(a);
  script.Alloc(50);
  EXPECT_EQ(Simulated(script).counters.live_peak, Bytes(5100));
}

TEST(Simulator, WithoutAPeriodTheArenaServesEverything) {
  EventScript script;
  for (int i = 0; i < 500; ++i) script.Alloc(4096 + i * 512);
  const SimulationResult result = Simulated(script);
  EXPECT_EQ(result.counters.plans, 0);
  EXPECT_EQ(result.counters.first_planned_iteration, 0);
  EXPECT_EQ(result.counters.arena, 500);
}

TEST(Simulator, WhatExceedsTheCapacityIsPassedAndTheRestServed) {
  EventScript script;
  script.Alloc(8 << 20);
  const BlockId large = script.Alloc(64 << 20);
  script.Alloc(1 << 20);
  script.Free(large);
  const SimulationResult result = Simulated(script, {.capacity = Bytes(16 << 20)});
  EXPECT_EQ(result.counters.passed, 1);
  EXPECT_EQ(result.counters.arena, 2);
  EXPECT_LE(result.reserved_peak, Bytes(16 << 20));
  EXPECT_EQ(result.counters.live_peak, Bytes(73 << 20));
  EXPECT_EQ(result.counters.live, Bytes(9 << 20));
}

TEST(Simulator, TwoRunsGiveTheSameFigures) {
  EventScript script;
  AppendTraining(script, 10);
  const SimulationResult a = Simulated(script);
  const SimulationResult b = Simulated(script);
  EXPECT_EQ(a.counters.planned, b.counters.planned);
  EXPECT_EQ(a.counters.slab, b.counters.slab);
  EXPECT_EQ(a.reserved_peak, b.reserved_peak);
}

TEST(Simulator, AnEvaluationInBetweenCostsOnlyItself) {
  EventScript script;
  TrainingJob job(&script);
  job.Iterate(8);
  const SimulationResult before = Simulated(script);
  job.Evaluate();
  job.Iterate(4);
  const SimulationResult after = Simulated(script);
  // A few allocations until it is in step again, and a few that their strays displace.
  EXPECT_GE(after.counters.planned - before.counters.planned, 4 * 36 * 85 / 100);
  EXPECT_EQ(after.counters.plans, 1);
  EXPECT_EQ(after.overlaps, 0);
}

}  // namespace
}  // namespace reprise::replay
