// Why: a real device is behind the host by most of an iteration. What is free by the host's count is not to be
// moved or given back yet; it must not be kept for good either, nor may more be held in its place.
#include "replay/device_behind.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "replay/simulator.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

TEST(DeviceBehind, WhatLiesOutsideOfThePlanIsGivenBackOnceTheDeviceHasFinishedWithIt) {
  EventScript script;
  AppendTraining(script, 12);
  const auto reserved_at_the_end = [&](int64_t behind) {
    SimulationOptions options = {.plan_seconds = 0.05, .behind = behind};
    options.arena_rules.waits = false;
    const SimulationResult result = *Simulate(script.events(), options);
    EXPECT_EQ(result.counters.plans, 1);
    return result.counters.reserved;
  };
  EXPECT_EQ(reserved_at_the_end(10), reserved_at_the_end(0));
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

TEST(DeviceBehind, StreamsOfARecordingHaveNumbers) {
  DeviceBehind device(1);
  constexpr Stream kByItsHandle{0x55d0c0a8f2b0};  // as snapshots name them
  EXPECT_EQ(device.NumberOf(kByItsHandle), Stream{0});
  EXPECT_EQ(device.NumberOf(Stream{0}), Stream{1});
  EXPECT_EQ(device.NumberOf(kByItsHandle), Stream{0});
  EXPECT_EQ(device.NumberOf(kEveryStream), kEveryStream);
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
