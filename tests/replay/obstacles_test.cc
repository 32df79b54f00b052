// Why: two cycles that take turns and lie in each other's way are laid anew for ever.
#include "replay/obstacles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/planning.h"

namespace reprise::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kKiB = 1024;

// Slots of 4 KiB side by side, one for each lifetime; the last at `last`.
ServingPlan PlanWith(const std::vector<int64_t>& lengths, int64_t last) {
  ServingPlan plan;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Offset offset(i + 1 == lengths.size() ? last : static_cast<int64_t>(i) * 4 * kKiB);
    plan.cycle.push_back({.bytes = Bytes(4 * kKiB),
                          .alignment = Bytes(512),
                          .stream = Stream{0},
                          .begin = static_cast<int64_t>(i),
                          .length = lengths[i]});
    plan.slots.push_back({.bytes = Bytes(4 * kKiB), .stream = Stream{0}, .offset = offset});
  }
  return plan;
}

std::vector<std::pair<int64_t, int64_t>> InKiB(const std::vector<Obstacle>& obstacles) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const Obstacle& each : obstacles)
    ranges.emplace_back(each.offset.count() / kKiB, (each.offset + each.bytes).count() / kKiB);
  return ranges;
}

// Its round was the tokens 10 to 13; at its end the third and the fourth are live.
const ServingPlan& Other() {
  static const ServingPlan plan = PlanWith({1, 1, 2, 1}, 40 * kKiB);
  return plan;
}
constexpr Tick kLastUsed{13};

TEST(PlacesOfOthers, AreJoinedAndLeaveOutWhatIsLive) {
  const std::vector<OtherPlan> others = {{&Other(), kLastUsed}};
  const Obstacle left = {Offset(8 * kKiB), Bytes(4 * kKiB), Tick(12)};
  EXPECT_THAT(InKiB(PlacesOfOthers(others, std::vector({left}))),
              ElementsAre(std::pair(0, 8), std::pair(40, 44)));
  const std::vector<Obstacle> around = {{Offset(kKiB), Bytes(kKiB)},
                                        left,
                                        {Offset(30 * kKiB), Bytes(11 * kKiB)},
                                        {Offset(43 * kKiB), Bytes(8 * kKiB)}};
  EXPECT_THAT(InKiB(PlacesOfOthers(others, around)),
              ElementsAre(std::pair(0, 1), std::pair(2, 8), std::pair(41, 43)));
}

TEST(PlacesOfOthers, AreOnlyOfThoseWhoseLastRoundHasLeftWhatItHadAtItsEnd) {
  const std::vector<OtherPlan> others = {{&Other(), kLastUsed}};
  const auto places = [&](Bytes bytes, Tick token) {
    return PlacesOfOthers(others, std::vector<Obstacle>({{Offset(8 * kKiB), bytes, token}}));
  };
  EXPECT_THAT(places(Bytes(4 * kKiB), Tick(10)), testing::Not(IsEmpty())) << "half of it";
  EXPECT_THAT(places(Bytes(3 * kKiB), Tick(10)), IsEmpty());
  EXPECT_THAT(places(Bytes(8 * kKiB), Tick(9)), IsEmpty()) << "older than that round";
  EXPECT_THAT(places(Bytes(8 * kKiB), Tick(14)), IsEmpty()) << "not of it";
  const ServingPlan nothing_at_end = PlanWith({1, 1, 1, 1}, -1);  // the last is not planned
  EXPECT_THAT(PlacesOfOthers(std::vector<OtherPlan>({{&nothing_at_end, kLastUsed}}),
                             std::vector<Obstacle>({{Offset(0), Bytes(4 * kKiB), Tick(12)}})),
              IsEmpty());
}

// A job may leave them at the end of any.
TEST(PlacesOfOthers, AreNoneOfAPlanOfSeveralRounds) {
  ServingPlan plan = PlanWith(std::vector<int64_t>(16, 1), 100 * kKiB);
  const std::vector<OtherPlan> others = {{&plan, Tick(16)}};
  const std::vector<Obstacle> left = {{Offset(0), Bytes(4 * kKiB), Tick(12)}};
  EXPECT_THAT(PlacesOfOthers(others, left), IsEmpty());
  plan.slots[3].bytes = plan.cycle[3].bytes = Bytes(2 * kKiB);  // and now it is one
  EXPECT_THAT(PlacesOfOthers(others, left), testing::Not(IsEmpty()));
}

TEST(MakeRequest, ACycleOfSeveralRoundsHasNoTurnInIt) {
  const std::vector<Obstacle> obstacles = {{Offset(8 * kKiB), Bytes(4 * kKiB), Tick(12)}};
  profiler::Iteration iteration{.period = 4, .slots = PlanWith({1, 1, 6, 1}, 0).cycle};
  EXPECT_EQ(MakeRequest(iteration, obstacles, {{&Other(), kLastUsed}}).problem.period, 8);
}

TEST(MakeRequest, ACycleThatTakesTurnsLiesAmongOthers) {
  ServingPlan other = Other();
  other.begin = Offset(4 * kKiB);  // beside what stays
  const std::vector<Obstacle> obstacles = {{Offset(8 * kKiB), Bytes(4 * kKiB), Tick(12)}};
  const profiler::Iteration iteration{.period = 4, .slots = PlanWith({4, 1, 3, 1}, 0).cycle};
  EXPECT_FALSE(MakeRequest(iteration, obstacles, {{&other, kLastUsed}}).may_lie_beside);
  EXPECT_TRUE(MakeRequest(iteration, {}, {{&other, kLastUsed}}).may_lie_beside) << "it has left nothing";
}

TEST(MakeRequest, WhatACycleHasAtItsEndKeepsOutOfThePlacesOfOthers) {
  const std::vector<Obstacle> obstacles = {{Offset(8 * kKiB), Bytes(4 * kKiB), Tick(12)}};
  // The first and the last are freed at the end of the round, the second before, the third after the next one has begun.
  profiler::Iteration iteration{.period = 4, .slots = PlanWith({4, 1, 3, 1}, 0).cycle};
  const PlanRequest request = MakeRequest(iteration, obstacles, {{&Other(), kLastUsed}});
  EXPECT_EQ(request.problem.period, 5);
  Candidate candidate;
  Plan(request, 1.0, candidate);
  ASSERT_TRUE(candidate.status.ok()) << candidate.status;
  const std::vector<ServingPlan::Slot>& slots = candidate.plan.slots;
  ASSERT_EQ(slots.size(), 4u);
  const auto is_in = [](Offset offset, int64_t begin, int64_t end) {
    return offset < Offset(end * kKiB) && offset + Bytes(4 * kKiB) > Offset(begin * kKiB);
  };
  for (const size_t live_at_end : {0, 2, 3}) {
    EXPECT_FALSE(is_in(slots[live_at_end].offset, 0, 12)) << live_at_end;
    EXPECT_FALSE(is_in(slots[live_at_end].offset, 40, 44)) << live_at_end;
  }
}

}  // namespace
}  // namespace reprise::replay
