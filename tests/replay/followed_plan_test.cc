// Why: by these measures a plan is left, doubted or laid anew; one that is wrong costs a good plan, or keeps a bad one.
#include "replay/followed_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::replay {
namespace {

constexpr uint32_t kNotASlot = Matcher::kNoSlot;
constexpr int64_t kPage = 4096;

// Slots of 4, 8, 12 ... KiB, each freed before the next but one.
FollowedPlan PlanOfSlots(int64_t slots) {
  FollowedPlan followed;
  for (int64_t i = 0; i < slots; ++i) {
    const Bytes bytes((i + 1) * kPage);
    followed.plan.slots.push_back({.bytes = bytes, .offset = Offset(i * 64 * kPage)});
    followed.plan.cycle.push_back({.bytes = bytes, .begin = i, .length = 2});
  }
  followed.matcher = std::make_unique<Matcher>(followed.plan);
  return followed;
}

// One round, of which the first `unmatched` are no slots. True: its measures were taken at its end, and not before.
bool CountRound(FollowedPlan& followed, int64_t unmatched = 0) {
  const auto slots = static_cast<int64_t>(followed.plan.slots.size());
  for (int64_t i = 0; i < slots; ++i) {
    const uint32_t slot = i < unmatched ? kNotASlot : static_cast<uint32_t>(i);
    if (followed.Count(Tick(i), slot, Bytes(kPage), Stream{}) != (i == slots - 1)) return false;
  }
  return true;
}

TEST(IsLonger, ByMoreThanAnEighth) {
  EXPECT_FALSE(IsLonger({.length = 90}, {.length = 80}));
  EXPECT_TRUE(IsLonger({.length = 91}, {.length = 80}));
  EXPECT_FALSE(IsLonger({.length = 80}, {.length = 91}));
}

TEST(PlannedCycle, IsOfThePeriodItWasFoundUnderOrOneAboutAsLong) {
  const PlannedCycle cycle = {.period = {.length = 80, .found_at = Tick(500)}};
  EXPECT_TRUE(cycle.IsOf({.length = 90, .found_at = Tick(900)}));
  EXPECT_FALSE(cycle.IsOf({.length = 91, .found_at = Tick(900)}));
  EXPECT_FALSE(cycle.IsOf({.length = 71, .found_at = Tick(900)}));
  EXPECT_TRUE(cycle.IsOf({.length = 240, .found_at = Tick(500)})) << "of three rounds";
}

TEST(FingerprintOf, IsTheSameWhereverTheRoundIsCut) {
  std::vector<profiler::Slot> cycle = PlanOfSlots(9).plan.cycle;
  const uint64_t fingerprint = FingerprintOf(cycle);
  std::ranges::rotate(cycle, cycle.begin() + 4);
  EXPECT_EQ(FingerprintOf(cycle), fingerprint);
  std::swap(cycle[2], cycle[3]);
  EXPECT_NE(FingerprintOf(cycle), fingerprint) << "in another order";
}

TEST(FingerprintOf, TellsStreamsAndLifetimesApartButNotHowLongWhatStaysDoes) {
  const std::vector<profiler::Slot> cycle = PlanOfSlots(9).plan.cycle;
  const auto changed = [&](auto change) {
    std::vector<profiler::Slot> other = cycle;
    change(other[5]);
    return FingerprintOf(other);
  };
  EXPECT_NE(changed([](profiler::Slot& slot) { slot.stream = Stream{7}; }), FingerprintOf(cycle));
  EXPECT_NE(changed([](profiler::Slot& slot) { slot.length = 3; }), FingerprintOf(cycle));
  const auto stays_for = [&](int64_t length) {
    return changed([&](profiler::Slot& slot) {
      slot.persistent = true;
      slot.length = length;
    });
  };
  EXPECT_EQ(stays_for(3), stays_for(900));
  EXPECT_NE(stays_for(2), FingerprintOf(cycle));
}

TEST(FollowedPlan, MeasuresEachRoundAnew) {
  FollowedPlan followed = PlanOfSlots(100);
  ASSERT_TRUE(CountRound(followed, 11));
  EXPECT_FALSE(followed.matches());
  EXPECT_FALSE(followed.useful());
  ASSERT_TRUE(CountRound(followed, 2));
  EXPECT_TRUE(followed.matches());
  ASSERT_TRUE(CountRound(followed, 3));
  EXPECT_FALSE(followed.matches());
  EXPECT_TRUE(followed.useful());
}

TEST(FollowedPlan, BeginsToCountWhereItComesIntoUse) {
  FollowedPlan followed = PlanOfSlots(100);
  for (int64_t i = 0; i < 60; ++i) followed.Count(Tick(i), kNotASlot, Bytes(kPage), Stream{});
  followed.BeginUse();
  ASSERT_TRUE(CountRound(followed));
  EXPECT_TRUE(followed.matches());
}

TEST(FollowedPlan, WhatCameBeforeItCameIntoUseIsNoMismatch) {
  FollowedPlan followed = PlanOfSlots(20);
  for (int64_t i = 0; i < 6; ++i) followed.matcher->Step(Bytes((i + 1) * kPage), Stream{});
  for (int i = 0; i < 9; ++i) followed.matcher->Step(Bytes(999), Stream{});
  ASSERT_GT(followed.mismatches(), 0);
  ASSERT_EQ(followed.times_lost(), 1);
  followed.BeginUse();
  EXPECT_EQ(followed.mismatches(), 0);
  EXPECT_EQ(followed.times_lost(), 0);
}

TEST(FollowedPlan, OfAnEarlierRunComesIntoUseForTheFirstTimeOnce) {
  FollowedPlan followed = PlanOfSlots(20);
  followed.plan.swing = Bytes(80 * kPage);
  followed.of_earlier_run = true;
  followed.Doubt();
  ASSERT_TRUE(followed.IsAstray());
  EXPECT_TRUE(followed.BeginUse());
  EXPECT_FALSE(followed.IsAstray()) << "its first cycle is laid around what is there";
  followed.Doubt();
  EXPECT_TRUE(followed.doubted);
  EXPECT_FALSE(followed.BeginUse());
  EXPECT_TRUE(followed.IsAstray());
}

TEST(FollowedPlan, SomethingLiesInItsWayWhereMoreThanAFiftiethIsElsewhere) {
  FollowedPlan followed = PlanOfSlots(100);
  const auto conflicts = [&](int64_t units) {
    followed.window_conflicts = Bytes(units * kPage);
    return CountRound(followed) && followed.in_the_way;
  };
  EXPECT_FALSE(conflicts(90)) << "in its first cycle what was there before goes by itself";
  followed.settled = true;
  EXPECT_FALSE(conflicts(2));
  EXPECT_TRUE(conflicts(3));
  EXPECT_FALSE(conflicts(0)) << "each round by itself";
}

TEST(FollowedPlan, HasProvedItselfAfterEightGoodRoundsInARow) {
  FollowedPlan followed = PlanOfSlots(100);
  followed.settled = true;
  for (int i = 0; i < 7; ++i) CountRound(followed);
  EXPECT_FALSE(followed.proven());
  CountRound(followed);
  EXPECT_TRUE(followed.proven());
  CountRound(followed, 50);
  EXPECT_FALSE(followed.proven());
}

TEST(FollowedPlan, ShortRoundsCountAsPartsOfOne) {
  FollowedPlan followed = PlanOfSlots(16);
  for (int i = 0; i < 31; ++i) CountRound(followed);
  EXPECT_FALSE(followed.proven());
  CountRound(followed);
  EXPECT_TRUE(followed.proven()) << "four of them are as long as one that counts";
}

// The seventh slot of a hundred lives for two allocations.
// Or it would be laid again as soon as it could be, for ever.
TEST(FollowedPlan, IsNotProvenWhereItTakesTooMuch) {
  FollowedPlan followed = PlanOfSlots(100);
  followed.takes_too_much = true;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(CountRound(followed));
  EXPECT_TRUE(followed.matches());
  EXPECT_FALSE(followed.proven());
}

TEST(FollowedPlan, ABlockOutstaysItsSlotByMoreThanATenthOfARound) {
  const FollowedPlan followed = PlanOfSlots(100);
  const Offset place(7 * 64 * kPage);
  const auto outstays = [&](int64_t age) {
    const auto now_at = static_cast<uint32_t>((7 + age) % 100);
    return followed.Outstays(now_at, Tick(1000), place, Tick(1001 + age));
  };
  EXPECT_FALSE(outstays(12)) << "only late";
  EXPECT_TRUE(outstays(13));
  EXPECT_TRUE(outstays(199));
  EXPECT_FALSE(outstays(200)) << "there for good";
  EXPECT_FALSE(followed.Outstays(20, Tick(1000), Offset(0), Tick(1014))) << "not of that slot";
  EXPECT_FALSE(followed.Outstays(20, Tick(-1), place, Tick(1014))) << "no allocation that is known";
}

// A job whose start comes to the cycle at the token 3; the matcher tells it from the token 6 on.
class StartOfAJob : public testing::Test {
 protected:
  StartOfAJob() {
    for (const int64_t bytes : {70, 71, 72}) Alloc(bytes);
    for (int64_t i = 0; i < 8; ++i) Alloc((i + 1) * kPage);
    for (int64_t token = 6; token < 11; ++token)
      followed.NoteInStart(Tick(token), static_cast<uint32_t>(token - 3));
  }
  void Alloc(int64_t bytes) { history.OnAlloc(Bytes(bytes), Bytes(512), Stream{}, Bytes(0)); }
  uint32_t SlotOf(int64_t token) const { return followed.SlotInStart(Tick(token), history); }

  FollowedPlan followed = PlanOfSlots(20);
  profiler::History history{{.initial_tokens = 16, .max_tokens = 16}};
};

TEST_F(StartOfAJob, WhatTheMatcherHasToldIsItsSlot) {
  EXPECT_EQ(SlotOf(6), 3u);
  EXPECT_EQ(SlotOf(10), 7u);
  EXPECT_EQ(SlotOf(11), kNotASlot) << "came later";
}

TEST_F(StartOfAJob, WhatCameInFrontOfItIsToldByItsSize) {
  EXPECT_EQ(SlotOf(5), 2u);
  EXPECT_EQ(SlotOf(3), 0u);
  EXPECT_EQ(SlotOf(2), kNotASlot) << "of another size than the last slot";
}

TEST_F(StartOfAJob, WhatTheHistoryHasForgottenIsNotKnown) {
  for (int i = 0; i < 10; ++i) Alloc(kPage);
  EXPECT_EQ(SlotOf(4), kNotASlot);
  EXPECT_EQ(SlotOf(5), 2u);
}

TEST_F(StartOfAJob, BehindItsFirstCycleNothingOfItIsKnown) {
  followed.plan.later = followed.plan.slots;
  followed.plan.later[0].offset = Offset(4096 * kPage);
  followed.EndFirstCycle();
  EXPECT_EQ(SlotOf(6), kNotASlot);
  EXPECT_EQ(followed.plan.slots[0].offset, Offset(4096 * kPage)) << "it lies as it was planned";
  EXPECT_TRUE(followed.plan.later.empty());
}

}  // namespace
}  // namespace reprise::replay
