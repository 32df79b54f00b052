// Why: people look at a plan beside what else is live, and take the two together for what the job needs.
#include "replay/offline_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace reprise::replay {
namespace {

constexpr double kSeconds = 1;

// Four slots of 4, 8, 16 and 32 KiB, each with this lifetime.
profiler::FoundIteration Found(const std::vector<int64_t>& lengths) {
  profiler::FoundIteration found;
  found.iteration.period = static_cast<int64_t>(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    found.iteration.slots.push_back({.bytes = Bytes(int64_t{4096} << i),
                                     .alignment = Bytes(64),
                                     .stream = Stream{0},
                                     .begin = static_cast<int64_t>(i),
                                     .length = lengths[i]});
  }
  found.event_of_slot.resize(lengths.size());
  std::iota(found.event_of_slot.begin(), found.event_of_slot.end(), 0);
  return found;
}

TEST(OfflinePlan, WhatIsLiveAtTheCutIsItsOwn) {
  const auto plan = PlanFound(Found({1, 2, 2, 2}), kSeconds);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->rounds, 1);
  EXPECT_EQ(plan->live_at_cut, Bytes(32768)) << "the block before is freed just before the cut";
}

TEST(OfflinePlan, OfSeveralRoundsAllThatIsLiveAtTheCut) {
  const auto plan = PlanFound(Found({1, 1, 1, 5}), kSeconds);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->period, 8);
  EXPECT_EQ(plan->rounds, 2);
  EXPECT_EQ(plan->live_at_cut, Bytes(32768)) << "the one of the round before is freed just before the cut";
  const auto longer = PlanFound(Found({1, 1, 1, 6}), kSeconds);
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->live_at_cut, Bytes(65536)) << "those of both rounds";
}

TEST(OfflinePlan, WhatPersistsIsNoPartOfIt) {
  profiler::FoundIteration found = Found({1, 1, 1, 4});
  found.iteration.slots[3].persistent = true;
  const auto plan = PlanFound(found, kSeconds);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->persistent, 1);
  EXPECT_EQ(plan->live_at_cut, Bytes(0));
}

}  // namespace
}  // namespace reprise::replay
