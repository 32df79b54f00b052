// Why: a wrong match costs a conflict, a wrong re-alignment costs most of an iteration. Each rule of
// following a cycle has a case here.
#include "replay/matcher.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace reprise::replay {
namespace {

constexpr Stream kOurs{0};
constexpr Stream kOther{7};
constexpr uint32_t kNo = Matcher::kNoSlot;

ServingPlan PlanOf(std::initializer_list<int64_t> sizes) {
  ServingPlan plan;
  for (const int64_t size : sizes)
    plan.slots.push_back({.bytes = Bytes(size), .stream = kOurs, .offset = {}});
  return plan;
}

std::vector<uint32_t> Feed(Matcher& matcher, std::initializer_list<int64_t> sizes, Stream stream = kOurs) {
  std::vector<uint32_t> slots;
  for (const int64_t size : sizes) slots.push_back(matcher.Step(Bytes(size), stream));
  return slots;
}

using Slots = std::vector<uint32_t>;

TEST(Matcher, StartsLostAndAlignsOnAUniqueGram) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Feed(matcher, {3, 4, 5, 6, 1}), (Slots{kNo, kNo, kNo, 5, 0}));
}

TEST(Matcher, FollowsTheCycleRound) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5}));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {5, 1, 2, 3, 4, 5, 1}), (Slots{4, 0, 1, 2, 3, 4, 0}));
  EXPECT_TRUE(matcher.InStep(kOurs));
}

TEST(Matcher, IsSureAfterFourInARow) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_FALSE(matcher.Sure(kOurs));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_TRUE(matcher.Sure(kOurs));
  Feed(matcher, {6});
  EXPECT_TRUE(matcher.InStep(kOurs));
  EXPECT_FALSE(matcher.Sure(kOurs)) << "it has just skipped one";
  Feed(matcher, {7, 8, 1, 2});
  EXPECT_TRUE(matcher.Sure(kOurs));
  EXPECT_FALSE(matcher.Sure(kOther));
}

TEST(Matcher, StartsWhereItIsTold) {
  Matcher matcher(PlanOf({1, 2, 3, 1, 2, 3, 1, 2, 3, 4}));
  matcher.StartAt(3);
  EXPECT_EQ(Feed(matcher, {1, 2, 3, 1}), (Slots{3, 4, 5, 6}));
  EXPECT_TRUE(matcher.Sure(kOurs));
  matcher.StartAt(9);
  EXPECT_EQ(Feed(matcher, {4, 1}), (Slots{9, 0}));
  EXPECT_FALSE(matcher.Sure(kOurs)) << "told, and not yet seen";
}

TEST(Matcher, ToldWrongFindsItsPlace) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  matcher.StartAt(11);
  EXPECT_EQ(Feed(matcher, {1, 2, 3, 4, 5}).back(), 4u);
}

TEST(Matcher, SkipsSlotsThatDidNotHappen) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8}));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {7, 8}), (Slots{6, 7}));
  EXPECT_EQ(matcher.mismatches(), 3 + 1) << "three before it was in step, one skip";
}

TEST(Matcher, AnExtraAllocationMovesNothing) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6}));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {99, 5, 6}), (Slots{kNo, 4, 5}));
}

TEST(Matcher, SwappedNeighboursBothFindTheirSlot) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8}));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {6, 5, 7, 8}), (Slots{5, 4, 6, 7}));
}

TEST(Matcher, ASkippedSlotIsFoundOnce) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));  // 5 is not near again
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {6, 5, 5}), (Slots{5, 4, kNo}));
}

TEST(Matcher, OfTwoSkippedSlotsEachIsFoundByItsSize) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(Feed(matcher, {7, 99, 6, 5, 8}), (Slots{6, kNo, 5, 4, 7}));
}

// ---- plans of several rounds alike

TEST(RoundsOf, IsHowOftenAPartComesInARow) {
  EXPECT_EQ(RoundsOf(PlanOf({1, 2, 3, 4, 5, 6, 7, 8})), 1);
  EXPECT_EQ(RoundsOf(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8})), 2);
  EXPECT_EQ(RoundsOf(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 9})), 1);
  EXPECT_EQ(RoundsOf(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8})), 3);
  EXPECT_EQ(RoundsOf(PlanOf({1, 2, 3, 4, 1, 2, 3, 4})), 1) << "no period is that short";
  ServingPlan six;
  for (int64_t i = 0; i < 6 * 8; ++i)
    six.slots.push_back({.bytes = Bytes(1 + i % 8), .stream = kOurs, .offset = {}});
  EXPECT_EQ(RoundsOf(six), 6);
  EXPECT_EQ(RoundsOf(PlanOf({})), 1);
}

ServingPlan ThreeRounds() {
  return PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(Matcher, TakesTheRoundsInTurn) {
  Matcher matcher(ThreeRounds());
  Feed(matcher, {5, 6, 7, 8});
  ASSERT_EQ(matcher.AtCut(), 8u);
  for (uint32_t slot = 8; slot < 40; ++slot) {
    EXPECT_EQ(matcher.Step(Bytes(slot % 8 + 1), kOurs), slot % 24);
    EXPECT_EQ(matcher.AtCut(), slot % 8 == 7 ? (slot + 1) % 24 : kNo) << slot;
  }
}

TEST(Matcher, GoesOnInALaterRoundWhenTold) {
  Matcher matcher(ThreeRounds());
  Feed(matcher, {5, 6, 7, 8, 1, 2});
  matcher.GoOnLater(1);
  EXPECT_EQ(Feed(matcher, {3, 4}), (Slots{18, 19}));
  matcher.GoOnLater(2);
  EXPECT_EQ(Feed(matcher, {5, 6}), (Slots{12, 13}));
}

TEST(Matcher, ComesBackInTheNextRound) {
  Matcher matcher(ThreeRounds());
  Feed(matcher, {5, 6, 7, 8, 1, 2});
  ASSERT_EQ(Feed(matcher, {3}), Slots{10});
  Feed(matcher, {90, 91, 92, 93});
  ASSERT_FALSE(matcher.InStep(kOurs));
  EXPECT_EQ(Feed(matcher, {5, 6, 7, 8}), (Slots{kNo, kNo, kNo, 15})) << "ahead of where it stopped";
  Feed(matcher, {90, 91, 92, 93});
  EXPECT_EQ(Feed(matcher, {2, 3, 4, 5}), (Slots{kNo, kNo, kNo, 20}));
  Feed(matcher, {90, 91, 92, 93});
  EXPECT_EQ(Feed(matcher, {2, 3, 4, 5}), (Slots{kNo, kNo, kNo, 4}))
      << "behind it: a round later, and the last leads to the first";
  Feed(matcher, {90, 91, 92, 93});
  EXPECT_EQ(Feed(matcher, {1, 2, 3, 4}), (Slots{kNo, kNo, kNo, 11}));
}

TEST(Matcher, LostAfterSeveralMissesAndBackWhereItStopped) {
  Matcher matcher(PlanOf({1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 4}));
  Feed(matcher, {2, 2, 3, 4});
  Feed(matcher, {1});
  Feed(matcher, {90, 91, 92, 93, 94});
  EXPECT_FALSE(matcher.InStep(kOurs));
  EXPECT_EQ(matcher.times_lost(), 1);
  EXPECT_EQ(Feed(matcher, {1, 1, 1, 1, 1, 2}), (Slots{kNo, kNo, kNo, 4, 5, 6}))
      << "the frozen cursor, although the gram occurs more than once";
}

TEST(Matcher, BackInStepOneStrayDoesNotLoseItAgain) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  Feed(matcher, {1, 2, 3, 4});
  Feed(matcher, {90, 91, 92, 93, 94});
  ASSERT_EQ(matcher.times_lost(), 1);
  EXPECT_EQ(Feed(matcher, {5, 6, 7, 8, 95, 9}), (Slots{kNo, kNo, kNo, 7, kNo, 8}));
  EXPECT_EQ(matcher.times_lost(), 1);
}

TEST(Matcher, AnAmbiguousGramDoesNotAlign) {
  Matcher matcher(PlanOf({9, 1, 2, 3, 4, 8, 1, 2, 3, 4}));
  EXPECT_EQ(Feed(matcher, {1, 2, 3, 4}), (Slots{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(Feed(matcher, {8, 1}), (Slots{5, 6})) << "2, 3, 4, 8 occurs once";
}

TEST(Matcher, BlocksOfOneSizeInARowDoNotKeepItOutOfPhase) {
  constexpr size_t kRound = 13;
  for (size_t large = 0; large < kRound; ++large) {
    ServingPlan plan = PlanOf({4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    plan.slots[large].bytes = Bytes(54);
    for (size_t phase = 0; phase < kRound; ++phase) {
      Matcher matcher(plan);
      uint32_t slot = kNo;
      for (size_t i = phase; i < 4 * kRound; ++i) slot = matcher.Step(plan.slots[i % kRound].bytes, kOurs);
      EXPECT_EQ(slot, kRound - 1) << large << ", from " << phase;
      EXPECT_EQ(matcher.AtCut(), 0u) << large << ", from " << phase;
    }
  }
}

// Three micro-batches, of which the first has two allocations more. One of them may be a stray one.
TEST(Matcher, IsInAnotherMicroBatchWhereTwoMismatchesTellTheSame) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 90, 11, 91, 12,  //
                          1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,          //
                          1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  matcher.StartAt(14);
  Feed(matcher, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(Feed(matcher, {90, 11, 12, 1}), (Slots{kNo, 24, 25, 26})) << "told once";
  Feed(matcher, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(Feed(matcher, {90, 11, 91, 12, 1}), (Slots{kNo, 36, 12, 13, 14}));
}

TEST(Matcher, AtTheCutOnlyInStep) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5}));
  EXPECT_EQ(matcher.AtCut(), kNo);
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_EQ(matcher.AtCut(), kNo);
  Feed(matcher, {5});
  EXPECT_EQ(matcher.AtCut(), 0u);
  Feed(matcher, {2});
  EXPECT_EQ(matcher.AtCut(), kNo);
}

TEST(Matcher, NotAtTheCutWithoutMatchesInARow) {
  Matcher matcher(PlanOf({1, 2, 3, 4, 5, 6}));
  Feed(matcher, {1, 2, 3, 4});
  Feed(matcher, {6});
  EXPECT_EQ(matcher.AtCut(), kNo) << "slot 4 was skipped just now";
}

TEST(Matcher, LanesAdvanceApart) {
  ServingPlan plan = PlanOf({1, 2, 3, 4});
  for (const int64_t size : {10, 20, 30, 40})
    plan.slots.push_back({.bytes = Bytes(size), .stream = kOther, .offset = {}});
  Matcher matcher(plan);
  Feed(matcher, {1, 2, 3, 4});
  EXPECT_TRUE(matcher.InStep(kOurs));
  EXPECT_FALSE(matcher.InStep(kOther));
  EXPECT_EQ(Feed(matcher, {10, 20, 30, 40}, kOther), (Slots{kNo, kNo, kNo, 7}));
  EXPECT_EQ(Feed(matcher, {1}), (Slots{0}));
  EXPECT_EQ(Feed(matcher, {10}, kOther), (Slots{4}));
}

TEST(Matcher, AnUnknownStreamMatchesNothing) {
  Matcher matcher(PlanOf({1, 2, 3, 4}));
  EXPECT_EQ(matcher.Step(Bytes(1), kOther), kNo);
  EXPECT_FALSE(matcher.InStep(kOther));
  EXPECT_EQ(matcher.mismatches(), 1);
}

TEST(Matcher, APlanWithoutSlotsMatchesNothing) {
  Matcher matcher(ServingPlan{});
  EXPECT_EQ(matcher.Step(Bytes(1), kOurs), kNo);
  EXPECT_EQ(matcher.AtCut(), kNo);
}

}  // namespace
}  // namespace reprise::replay
