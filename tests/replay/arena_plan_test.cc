// Why: what a plan keeps is paid for while nobody uses it; what it lends too freely it has to ask for again in every round.
#include <gtest/gtest.h>

#include <vector>

#include "replay/arena.h"
#include "replay/counted_memory.h"

namespace reprise::replay {
namespace {

class ArenaWithAPlan : public testing::Test {
 protected:
  static constexpr Bytes kGranule = Bytes(2 * kMiB.count());
  static constexpr auto kAnywhere = Arena::Where::kAnywhere;
  static constexpr auto kOutsidePlan = Arena::Where::kOutsidePlan;
};

TEST_F(ArenaWithAPlan, OutsideThePlanMeansOutside) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * 3));
  EXPECT_GE(arena.OffsetOf(arena.Place(Bytes(4096), Bytes(1), kOutsidePlan)), Offset(kGranule.count() * 3));
}

TEST_F(ArenaWithAPlan, KeepsThePlansMemoryAndGivesBackTheRest) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * 2));
  const auto planned = arena.PlaceAt(Offset(0), kGranule * 2);
  const auto stray = arena.Place(kGranule, Bytes(1), kOutsidePlan);
  arena.Remove(planned);
  arena.Remove(stray);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/false), kGranule);
  EXPECT_EQ(memory.committed(), kGranule * 2);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), kGranule * 2);
}

TEST_F(ArenaWithAPlan, GivesBackTheGranuleInWhichThePlanEnds) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const Offset end = Offset(0) + kGranule + Bytes(kGranule.count() / 2);
  arena.SetPlanEnd(end);
  const auto planned = arena.PlaceAt(Offset(0), end - Offset(0));
  const auto stray = arena.Place(Bytes(4096), Bytes(1), kOutsidePlan);
  ASSERT_EQ(memory.committed(), kGranule * 2) << "they share one";
  arena.Remove(planned);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), kGranule);
  arena.Remove(stray);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/false), Bytes(0));
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), kGranule);
  EXPECT_EQ(memory.committed(), Bytes(0));
}

TEST_F(ArenaWithAPlan, WhenThePlanIsNotFollowedItsFreeMemoryMoves) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * 4));
  arena.Remove(arena.PlaceAt(Offset(0), kGranule * 4));
  ASSERT_TRUE(arena.Place(kGranule * 5, Bytes(1), kAnywhere)) << "does not fit the plan's range";
  EXPECT_EQ(memory.peak(), kGranule * 5);
  ASSERT_TRUE(arena.PlaceAt(Offset(0), kGranule)) << "the plan is followed again";
  EXPECT_EQ(memory.peak(), kGranule * 6);
}

TEST_F(ArenaWithAPlan, ASmallBlockThatMayLieAnywhereTakesNothingOfIt) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * 4));
  arena.Remove(arena.PlaceAt(Offset(0), kGranule * 4));
  ASSERT_TRUE(arena.Place(kSmallBlock - Bytes(1), Bytes(1), kAnywhere));
  EXPECT_EQ(memory.committed(), kGranule * 5);
  ASSERT_TRUE(arena.Place(kSmallBlock, Bytes(1), kAnywhere)) << "has room in it";
  ASSERT_TRUE(arena.Place(kGranule * 4, Bytes(1), kAnywhere)) << "has not, and takes three from it";
  EXPECT_EQ(memory.committed(), kGranule * 6);
}

TEST_F(ArenaWithAPlan, ThePlanLendsItsFreeMemoryBeforeMuchMoreIsHeld) {
  for (const bool lends : {true, false}) {
    CountedMemory memory(kGranule, kGiB);
    Arena arena(&memory, Bytes(0), nullptr, {.plan_lends = lends, .plan_yields = false});
    arena.SetPlanEnd(Offset(kGranule.count() * 4));
    arena.Remove(arena.PlaceAt(Offset(0), kGranule * 4));
    ASSERT_TRUE(arena.Place(kGranule * 4, Bytes(1), kOutsidePlan));
    EXPECT_EQ(memory.peak(), kGranule * (lends ? 5 : 8)) << "four were live at once, and one is the slack";
    EXPECT_EQ(arena.granules_moved(), lends ? 3 : 0);
    EXPECT_TRUE(arena.PlaceAt(Offset(0), kGranule)) << "and has it back when it wants it";
  }
}

TEST_F(ArenaWithAPlan, ThePlanLendsNothingThatIsInUse) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0), nullptr, {.plan_yields = false});
  arena.SetPlanEnd(Offset(kGranule.count() * 4));
  const auto low = arena.PlaceAt(Offset(512), Bytes(512));
  const auto high = arena.PlaceAt(Offset(kGranule.count() * 4 - 512), Bytes(512));
  const auto all = arena.PlaceAt(Offset(1024), kGranule * 4 - Bytes(2048));
  arena.Remove(all);
  ASSERT_TRUE(arena.Place(kGranule * 3, Bytes(1), kOutsidePlan));
  EXPECT_EQ(arena.granules_moved(), 2) << "the first and the last of the plan's have a block in them";
  EXPECT_TRUE(arena.Find(arena.OffsetOf(low)));
  EXPECT_TRUE(arena.Find(arena.OffsetOf(high)));
  EXPECT_TRUE(arena.Consistent());
}

// Knows the highest granule that was ever given back.
class WatchedMemory : public CountedMemory {
 public:
  using CountedMemory::CountedMemory;
  void Release(int64_t first, int64_t count) override {
    highest_released = std::max(highest_released, first + count - 1);
    CountedMemory::Release(first, count);
  }
  int64_t highest_released = -1;
};

TEST_F(ArenaWithAPlan, ThePlanLendsHoweverLargeItIs) {
  constexpr int64_t kTail = 8000, kHead = 1000;  // granules: 18 GB
  WatchedMemory memory(kGranule, kGiB * 64);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * (kHead + kTail)));
  const auto low = arena.PlaceAt(Offset(0), kGranule * kHead);
  ASSERT_TRUE(arena.PlaceAt(Offset(kGranule.count() * kHead), kGranule * kTail));
  arena.Remove(low);
  ASSERT_TRUE(arena.Place(kGranule * kHead, Bytes(1), kOutsidePlan));
  EXPECT_LE(memory.peak(), kGranule * ((kHead + kTail) * 65 / 64 + 1))
      << "what is free lies behind a large block";
  ASSERT_TRUE(arena.Place(kGranule * kHead, Bytes(1), kOutsidePlan));
  EXPECT_LT(memory.highest_released, kHead)
      << "what is in use keeps its memory, all the more when nothing is left";
}

TEST_F(ArenaWithAPlan, ThePlanLendsAgainFromWhereItLent) {
  constexpr int64_t kBlocks = 5000, kGap = 1000;  // more blocks than are looked at for one request
  CountedMemory memory(kGranule, kGiB * 64);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * (kBlocks + kGap)));
  for (int64_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(arena.PlaceAt(Offset(kGranule.count() * i), kGranule));
  arena.Remove(arena.PlaceAt(Offset(kGranule.count() * kBlocks), kGranule * kGap));
  for (int64_t lent = 0; lent < kGap; lent += 200)
    ASSERT_TRUE(arena.Place(kGranule * 200, Bytes(1), kOutsidePlan));
  EXPECT_LE(memory.peak(), kGranule * ((kBlocks + kGap) * 65 / 64 + 1));
}

TEST_F(ArenaWithAPlan, APlanYieldsBeforeMoreIsHeldForItThanWasEverLiveAndATwentieth) {
  for (const bool yields : {true, false}) {
    CountedMemory memory(kGranule, kGiB);
    Arena arena(&memory, Bytes(0), nullptr, {.plan_yields = yields});
    arena.SetPlanEnd(Offset(0) + kGranule * 39);
    const auto all = arena.PlaceAt(Offset(0), kGranule * 39);
    arena.Remove(all);
    arena.PlanHasSettled();
    for (int64_t i = 0; i < 39; ++i) ASSERT_TRUE(arena.PlaceAt(Offset(0) + kGranule * i, Bytes(4096)));
    ASSERT_TRUE(arena.Place(kGranule * 3, Bytes(1), kOutsidePlan));  // none of the plan's is free
    EXPECT_FALSE(arena.PlanYields()) << "of 40 at most, 42 are held";
    EXPECT_EQ(bool{arena.Place(Bytes(kGranule.count() / 2), Bytes(1), kOutsidePlan)}, !yields) << "43";
    EXPECT_EQ(arena.PlanYields(), yields);
    EXPECT_EQ(memory.committed(), kGranule * (yields ? 42 : 43)) << "nothing is held for what was refused";
    EXPECT_TRUE(arena.Place(Bytes(64), Bytes(1), kOutsidePlan)) << "small blocks have a zone of their own";
    const auto anywhere = arena.Place(Bytes(kGranule.count() / 2), Bytes(1), kAnywhere);
    ASSERT_TRUE(anywhere);
    EXPECT_LT(arena.OffsetOf(anywhere), arena.plan_end()) << "between the plan's blocks";
    ASSERT_TRUE(arena.Place(kGranule * 74, Bytes(1), kAnywhere));
    EXPECT_EQ(arena.PlanYields(), yields) << "of 78 at most";
    ASSERT_TRUE(arena.Place(kGranule * 3, Bytes(1), kAnywhere));
    EXPECT_FALSE(arena.PlanYields()) << "twice as much has been live since";
  }
}

// What is kept free between streams is no more than it was planned to be: a plan is not given up for it, and nothing moves.
TEST_F(ArenaWithAPlan, WhatIsKeptFreeForStreamsIsNotTooMuch) {
  for (const int64_t for_lag : {0, 4}) {
    CountedMemory memory(kGranule, kGiB);
    Arena arena(&memory, Bytes(0));
    arena.SetPlanEnd(Offset(0) + kGranule * 39);
    arena.SetForLag(kGranule * for_lag - Bytes(1));
    arena.Remove(arena.PlaceAt(Offset(0), kGranule * 39));
    arena.PlanHasSettled();
    for (int64_t i = 0; i < 39; ++i) ASSERT_TRUE(arena.PlaceAt(Offset(0) + kGranule * i, Bytes(4096)));
    ASSERT_TRUE(arena.Place(kGranule * 3, Bytes(1), kOutsidePlan));
    const bool more{arena.Place(Bytes(kGranule.count() / 2), Bytes(1), kOutsidePlan)};
    EXPECT_EQ(more, for_lag > 0) << "of 40 at most, 43 are held";
    EXPECT_EQ(arena.PlanYields(), for_lag == 0);
  }
}

// A process on the host has tens of thousands of small blocks.
TEST_F(ArenaWithAPlan, ThePlanLendsHoweverManySmallBlocksAreInIt) {
  constexpr int64_t kGap = 4, kCrowded = 4, kBlocks = 16000;  // more than are looked at for one request
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * (kGap + kCrowded)));
  for (int64_t i = 0; i < kBlocks; ++i)
    ASSERT_TRUE(arena.PlaceAt(Offset(kGranule.count() * kGap + 512 * i), Bytes(256)));
  arena.Remove(arena.PlaceAt(Offset(0), kGranule * kGap));
  ASSERT_TRUE(arena.Place(kGranule * kGap, Bytes(1), kOutsidePlan));
  EXPECT_EQ(memory.peak(), kGranule * (kGap + kCrowded)) << "what is free lies behind all of them";
}

// A request does not look through however many free ranges for one that still has memory.
TEST_F(ArenaWithAPlan, FreeRangesWithoutMemoryAreLookedAtToo) {
  for (const int free_ranges : {1000, 5000}) {
    CountedMemory memory(kGranule, kGiB * 64);
    Arena arena(&memory, Bytes(0));
    const auto add = [&](Bytes bytes) {
      const Arena::Block block = arena.Place(bytes, Bytes(1), kAnywhere);
      arena.Place(kSmallBlock, Bytes(1), kAnywhere);  // between it and the next
      return block;
    };
    std::vector<Arena::Block> large;
    for (int i = 0; i < free_ranges; ++i) large.push_back(add(kGranule * 3));
    const Arena::Block last = add(kGranule * 2);
    for (const Arena::Block& block : large) arena.Remove(block);
    ASSERT_GT(arena.GiveBack(/*plan_too=*/true), Bytes(0));
    arena.Remove(last);
    ASSERT_TRUE(arena.Place(kGranule * 8, Bytes(1), kAnywhere));
    EXPECT_EQ(arena.granules_moved() > 0, free_ranges < 4096);
    EXPECT_EQ(arena.GiveBack(/*plan_too=*/true) > Bytes(0), free_ranges > 4096)
        << "all of it is found at last";
  }
}

TEST_F(ArenaWithAPlan, WhatComesAgainIsNotMovedForOnceThePlanHasSettled) {
  for (const bool settled : {true, false}) {
    CountedMemory memory(kGranule, kGiB);
    Arena arena(&memory, Bytes(0));
    if (!settled) arena.PlanHasSettled();  // the one before
    arena.SetPlanEnd(Offset(kGranule.count() * 128));
    if (settled) arena.PlanHasSettled();
    const auto round = [&] {
      arena.Remove(arena.PlaceAt(Offset(0), kGranule * 128));
      arena.Remove(arena.Place(kGranule * 2, Bytes(1), kOutsidePlan));
    };
    round();
    EXPECT_EQ(arena.granules_moved(), 1) << "it may never come again";
    EXPECT_EQ(memory.committed(), kGranule * 129);
    round();
    const int64_t moved = arena.granules_moved();
    round();
    EXPECT_EQ(arena.granules_moved(), settled ? moved : moved + 2) << "130 of 128: within a 64th and one";
  }
}

TEST_F(ArenaWithAPlan, WhatAPlanLendsBeforeItHasSettledSaysNothingOfWhatComesAgain) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(kGranule.count() * 128));
  const auto round = [&] {
    arena.Remove(arena.PlaceAt(Offset(0), kGranule * 128));
    arena.Remove(arena.Place(kGranule * 2, Bytes(1), kOutsidePlan));
  };
  round();
  ASSERT_EQ(arena.granules_moved(), 1);
  arena.PlanHasSettled();
  round();
  EXPECT_EQ(memory.peak(), kGranule * 129) << "it may never come again";
  round();
  EXPECT_EQ(memory.peak(), kGranule * 130);
}

// A job's limit, or another process that has the rest of the device: what the plan will want again is less than a block now.
TEST_F(ArenaWithAPlan, BeforeARequestIsRefusedThePlanGivesUpWhatIsFree) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, /*capacity=*/kGranule * 4);
  arena.SetPlanEnd(Offset(0) + kGranule * 2);
  const auto planned = arena.PlaceAt(Offset(0), kGranule * 2);
  const auto other = arena.Place(kGranule * 2, Bytes(1), kOutsidePlan);
  arena.Remove(planned);
  arena.Remove(other);
  EXPECT_TRUE(arena.Place(kGranule * 3, Bytes(1), kOutsidePlan))
      << "no more than was live: nothing is lent for it";
  EXPECT_LE(memory.peak(), kGranule * 4);
}

}  // namespace
}  // namespace reprise::replay
