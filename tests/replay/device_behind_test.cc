// Why: a real device is behind the host by most of an iteration. What is free by the host's count is not to be
// moved or given back yet; it must not be kept for good either, nor may more be held in its place.
#include "replay/device_behind.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/simulator.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

constexpr Stream kJobStream{0};

// One that no host may wait for.
class NeverAwaited : public DeviceBehind {
 public:
  using DeviceBehind::DeviceBehind;
  bool Await(Event event) override { return Complete(event); }
};

// The same on a busy machine.
absl::StatusOr<planner::Solution> SolveBySteps(const planner::Problem& problem,
                                               const planner::Budget& budget) {
  planner::Budget by_work = budget;
  by_work.steps = 500'000;
  by_work.seconds = 60;
  return planner::Solve(problem, by_work);
}

// What a job has come to on it.
Counters Served(const EventScript& script, int64_t behind) {
  NeverAwaited device(behind);
  InlineRunner runner;
  auto engine =
      Engine::Create({.solve = SolveBySteps},
                     std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64, kGiB * 64), &runner, &device);
  EXPECT_TRUE(engine.ok());
  const Engine::Guard guard = (*engine)->Lock();
  std::map<BlockId, Offset> placed;
  for (const profiler::Event& event : script.events()) {
    if (event.kind == profiler::EventKind::kAlloc) {
      device.OnAllocation();
      placed[event.id] = *(*engine)->Allocate(guard, event.bytes, Bytes(64), kJobStream);
    } else if (event.kind == profiler::EventKind::kFree) {
      (*engine)->Free(guard, placed[event.id], kJobStream);
    }
  }
  return (*engine)->counters(guard);
}

TEST(DeviceBehind, GivesBackWhatLiesOutsideOfThePlanOnceTheDeviceHasFinishedWithIt) {
  EventScript script;
  AppendTraining(script, 12);
  const Counters behind = Served(script, 10);
  EXPECT_EQ(behind.plans, 1);
  EXPECT_EQ(behind.reserved, Served(script, 0).reserved);
}

TEST(DeviceBehind, PlansAreBehindAsWell) {
  DeviceBehind device(3);
  bool solved = false;
  device.Run([&] { solved = true; });
  for (int i = 0; i < 2; ++i) device.OnAllocation();
  EXPECT_FALSE(solved);
  device.OnAllocation();
  EXPECT_TRUE(solved);
}

// Evaluations between the iterations, and sizes that make granules move.
EventScript WithEvaluations() {
  EventScript script;
  TrainingJob job(&script, {.layers = 40, .scale = 300 << 10});
  for (int i = 0; i < 8; ++i) {
    job.Iterate(3);
    job.Evaluate();
  }
  return script;
}

// What `simulate --behind` says; how much less is held for it, varying_streams_test shows.
TEST(DeviceBehind, IsSimulated) {
  const EventScript script = WithEvaluations();
  const auto simulated = [&](int64_t behind, Bytes capacity) {
    return *Simulate(script.events(), {.capacity = capacity, .plan_seconds = 0.05, .behind = behind});
  };
  const SimulationResult never = simulated(0, Bytes(0));
  const SimulationResult behind = simulated(300, Bytes(0));
  EXPECT_GT(behind.counters.host_waits, 0);
  EXPECT_EQ(behind.overlaps, 0);
  EXPECT_GT(behind.counters.first_planned_request, never.counters.first_planned_request);
  EXPECT_LE(behind.reserved_peak * 100, never.reserved_peak * 102);
  EXPECT_EQ(simulated(300, behind.reserved_peak).counters.passed, 0);
  EXPECT_EQ(simulated(300, Bytes(never.counters.live_peak.count() / 2)).overlaps, 0);
}

}  // namespace
}  // namespace reprise::replay
