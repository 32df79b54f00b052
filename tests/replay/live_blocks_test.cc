// Why: a live block that is taken for an instance of a slot, and is none, is laid over; one that is not, and is, keeps its own
// place from its cycle.
#include "replay/live_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/counted_memory.h"
#include "tests/replay/sequence_job.h"

namespace reprise::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes kGranuleOfThem = Bytes(64 * kKiB.count());
constexpr uint32_t kNoInstance = Matcher::kNoSlot;
constexpr Stream kOtherStream{7};

constexpr Bytes KibiBytes(int64_t count) { return kKiB * count; }

// Of four slots the last stays; slot 0 was the token 100 last, or 104.
class LiveBlocks : public testing::Test {
 protected:
  LiveBlocks() {
    for (const auto& [kib, length] : {std::pair(8, 6), std::pair(16, 2), std::pair(8, 4), std::pair(32, 1)})
      slots.push_back(
          {.bytes = KibiBytes(kib), .begin = static_cast<int64_t>(slots.size()), .length = length});
    slots[3].persistent = true;
  }
  static BlockInfo InfoOf(int64_t token, Bytes bytes, Stream stream = {}) {
    return {.requested = bytes, .token = Tick(token), .stream = stream};
  }
  CycleAt Cycle(int64_t now = 106) const { return {slots, Tick(100), Tick(now)}; }
  // Side by side from the begin of the arena on.
  Offset Add(int64_t token, Bytes bytes) {
    const Arena::Block block = arena.Place(bytes, Bytes(1), Arena::Where::kAnywhere);
    Arena::Info(block) = InfoOf(token, bytes);
    return arena.OffsetOf(block);
  }

  std::vector<profiler::Slot> slots;
  CountedMemory memory{kGranuleOfThem, KibiBytes(1024)};
  Arena arena{&memory, Bytes(0)};
};

TEST_F(LiveBlocks, AreOfTheSlotThatIsTheirTurn) {
  EXPECT_EQ(Cycle().SlotOf(InfoOf(104, KibiBytes(8))), 0u);
  EXPECT_EQ(Cycle().SlotOf(InfoOf(105, KibiBytes(16))), 1u);
  EXPECT_EQ(Cycle(101).SlotOf(InfoOf(98, KibiBytes(8))), 2u) << "in the round before";
}

TEST_F(LiveBlocks, OlderThanTheirSlotLivesForAreNone) {
  EXPECT_EQ(Cycle(106).SlotOf(InfoOf(100, KibiBytes(8))), 0u);
  EXPECT_EQ(Cycle(107).SlotOf(InfoOf(100, KibiBytes(8))), kNoInstance);
}

TEST_F(LiveBlocks, OfAnotherSizeOrStreamOrThatStayAreNone) {
  EXPECT_EQ(Cycle().SlotOf(InfoOf(104, KibiBytes(9))), kNoInstance);
  EXPECT_EQ(Cycle().SlotOf(InfoOf(104, KibiBytes(8), kOtherStream)), kNoInstance);
  EXPECT_EQ(Cycle(104).SlotOf(InfoOf(103, KibiBytes(32))), kNoInstance);
}

TEST_F(LiveBlocks, ThatAreNoInstancesAreObstacles) {
  const Offset weight = Add(3, KibiBytes(40));
  Add(104, KibiBytes(8));
  const Offset state = Add(101, KibiBytes(16));
  const std::vector<Obstacle> obstacles = FindObstacles(arena, Cycle());
  ASSERT_EQ(obstacles.size(), 2u);
  EXPECT_EQ(obstacles[0].offset, weight);
  EXPECT_EQ(obstacles[0].bytes, KibiBytes(40));
  EXPECT_EQ(obstacles[0].token, Tick(3));
  EXPECT_EQ(obstacles[1].offset, state);
}

TEST_F(LiveBlocks, OfTheStartThatAreNoInstancesStay) {
  Add(9, KibiBytes(40));
  Add(98, KibiBytes(8));
  Add(3, KibiBytes(16));
  Add(-1, KibiBytes(16));
  Add(100, KibiBytes(40));
  std::vector<int64_t> tokens;
  for (const StayingBlock& each : WhatStays(arena, Cycle(101), Tick(100)))
    tokens.push_back(each.token.count());
  EXPECT_THAT(tokens, ElementsAre(3, 9));
}

// Half a round is two allocations.
TEST_F(LiveBlocks, TheCycleBeginsBehindWhatLooksLikeASlotAndStays) {
  Add(96, KibiBytes(8));
  EXPECT_EQ(BeginOf(arena, Cycle(130), Tick(97)), Tick(97)) << "of the start";
  Add(98, KibiBytes(9));
  EXPECT_EQ(BeginOf(arena, Cycle(130), Tick(97)), Tick(97)) << "of no slot's size";
  Add(97, KibiBytes(16));
  EXPECT_EQ(BeginOf(arena, Cycle(99), Tick(97)), Tick(97)) << "as old as it may be";
  EXPECT_EQ(BeginOf(arena, Cycle(130), Tick(97)), Tick(98));
  Add(99, KibiBytes(32));
  EXPECT_EQ(BeginOf(arena, Cycle(130), Tick(98)), Tick(98)) << "it stays in every round";
  Add(100, KibiBytes(8));
  EXPECT_EQ(BeginOf(arena, Cycle(130), Tick(97)), Tick(98)) << "in its cycle by then";
}

TEST_F(LiveBlocks, ThatOutliveTheirRoundAreToKeepTheirPlace) {
  PlanRequest request{.iteration = {.period = 8, .origin = Tick(100)}};
  for (const profiler::Slot& slot : slots) request.iteration.slots.push_back(slot);
  for (const profiler::Slot& slot : slots) request.iteration.slots.push_back(slot);
  for (const uint32_t slot : {0, 1, 2, 4, 5, 6}) {
    request.slot_of.push_back(slot);
    request.problem.buffers.emplace_back();
  }
  Add(3, KibiBytes(40));
  const Offset first = Add(100, KibiBytes(8));
  Add(105, KibiBytes(16));
  const Offset second = Add(104, KibiBytes(8));
  const auto kept = [&](size_t buffer) { return request.problem.buffers[buffer].previous; };

  KeepInPlace(arena, /*found=*/8, Tick(106), request);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(kept(i), std::nullopt) << "one round: nothing outlives it";
  KeepInPlace(arena, /*found=*/4, Tick(106), request);
  EXPECT_EQ(kept(0), first);
  EXPECT_EQ(kept(3), second);
  for (const size_t i : {1, 2, 4, 5}) EXPECT_EQ(kept(i), std::nullopt) << i;
}

TEST_F(LiveBlocks, BesideRegionsAreThoseThatBeginInNone) {
  Add(1, KibiBytes(8));
  Add(2, KibiBytes(16));
  Add(3, KibiBytes(32));
  const auto at = [](int64_t begin, int64_t end) {
    return Region(Offset(0) + KibiBytes(begin), Offset(0) + KibiBytes(end));
  };
  EXPECT_EQ(LiveBeside(arena, {}), KibiBytes(56));
  EXPECT_EQ(LiveBeside(arena, {at(8, 24)}), KibiBytes(40));
  EXPECT_EQ(LiveBeside(arena, {at(4, 9)}), KibiBytes(40)) << "the first begins before it";
  EXPECT_EQ(LiveBeside(arena, {at(20, 40), at(0, 8)}), KibiBytes(16));
}

TEST_F(LiveBlocks, AndRegionsLeaveARoomOfGranulesAboveThem) {
  const auto lowest = [&](std::vector<Region> regions, int64_t kib) {
    return LowestFree(arena, std::move(regions), KibiBytes(kib), kGranuleOfThem);
  };
  const Region between(Offset(0) + KibiBytes(200), Offset(0) + KibiBytes(210));
  EXPECT_EQ(lowest({}, 64), Offset(0));
  Add(1, KibiBytes(8));
  EXPECT_EQ(lowest({}, 64), Offset(0) + kGranuleOfThem);
  EXPECT_EQ(lowest({between}, 136), Offset(0) + kGranuleOfThem) << "as high as there is room below it";
  EXPECT_EQ(lowest({between}, 137), Offset(0) + kGranuleOfThem * 4);
  const Region below(Offset(0), Offset(0) + KibiBytes(60));
  EXPECT_EQ(lowest({below, between}, 136), Offset(0) + kGranuleOfThem);
  arena.PlaceAt(Offset(0) + KibiBytes(100), KibiBytes(1));  // in the second granule
  EXPECT_EQ(lowest({below}, 64), Offset(0) + kGranuleOfThem * 2) << "below it the region leaves too little";
  const Bytes all = arena.main_end() - (Offset(0) + kGranuleOfThem * 2);
  EXPECT_EQ(LowestFree(arena, {}, all, kGranuleOfThem), Offset(0) + kGranuleOfThem * 2);
  EXPECT_EQ(LowestFree(arena, {}, all + Bytes(1), kGranuleOfThem), std::nullopt);
}

// Its buffers in a row, a little apart: no place touches the next.
absl::StatusOr<planner::Solution> OneAfterTheOther(const planner::Problem& problem,
                                                   const planner::Budget& budget) {
  absl::StatusOr<planner::Solution> solution = planner::Solve(problem, budget);
  Offset next;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    solution->placement.offsets[i] = next;
    solution->placement.slab = next + problem.buffers[i].size - Offset(0);
    next = next + problem.buffers[i].size + KibiBytes(4);
  }
  return solution;
}

// A plan of ten slots of 8, 16, ... 80 KiB which are all live when a round ends, and none when the next begins: slot 0 lives for
// ten allocations, slot 9 for one. The round that is looked at begins with the token 100.
class InThePlansWay : public testing::Test {
 protected:
  InThePlansWay() {
    job.solve = OneAfterTheOther;
    Sizes sizes;
    for (int64_t i = 1; i <= 10; ++i) sizes.push_back(KibiBytes(8 * i).count());
    job.Rounds(40, sizes);
  }
  void SetUp() override {
    ASSERT_NE(job.sequence.plan(), nullptr);
    ASSERT_EQ(job.sequence.plan()->cycle.size(), 10u);
    ASSERT_EQ(job.sequence.plan()->cycle[9].bytes, KibiBytes(80));
    ASSERT_EQ(job.sequence.plan()->cycle[9].length, 1);
  }
  Offset PlaceOf(size_t slot) const { return job.sequence.plan()->slots[slot].offset; }
  Offset Beside() const { return job.sequence.plan()->end + KibiBytes(4); }
  void AddAt(Offset offset, Bytes bytes, int64_t token) {
    const Arena::Block block = arena.PlaceAt(offset, bytes);
    ASSERT_TRUE(block);
    Arena::Info(block) = {.requested = bytes, .token = Tick(token)};
  }
  // When so many of the round's slots have come.
  InTheWay Found(int64_t slots = 1) const {
    return FindInTheWay(job.sequence, arena, {job.sequence.plan()->cycle, Tick(100), Tick(100 + slots)});
  }

  SequenceJob job;
  CountedMemory memory{kGranuleOfThem, KibiBytes(2048)};
  Arena arena{&memory, Bytes(0)};
};

TEST_F(InThePlansWay, WhatStaysIsAsFarAsItLiesInPlaces) {
  AddAt(Beside(), KibiBytes(20), 3);
  EXPECT_EQ(Found().others, Bytes(0));
  AddAt(PlaceOf(1) + KibiBytes(8), KibiBytes(20), 4);  // the gap of 4 KiB is nobody's
  EXPECT_EQ(Found().others, KibiBytes(8 + 8));
  AddAt(PlaceOf(2) + KibiBytes(20), KibiBytes(8), 5);
  EXPECT_EQ(Found().others, KibiBytes(8 + 8 + 4));
  AddAt(PlaceOf(7), KibiBytes(12), 6);
  EXPECT_EQ(Found().others, KibiBytes(8 + 8 + 4 + 12));
  EXPECT_EQ(Found().outliving, Bytes(0));
}

TEST_F(InThePlansWay, AnInstanceIsOnceItIsMuchTooOld) {
  AddAt(PlaceOf(0), KibiBytes(8), 90);  // would go with this allocation
  AddAt(PlaceOf(9), KibiBytes(80), 99);
  EXPECT_EQ(Found().outliving, Bytes(0));
  AddAt(Beside(), KibiBytes(80), 89);
  EXPECT_EQ(Found().outliving, KibiBytes(80)) << "wherever it lies";
  EXPECT_EQ(Found().others, Bytes(0));
}

TEST_F(InThePlansWay, AnInstanceOfTwoRoundsAgoStays) {
  AddAt(PlaceOf(3), KibiBytes(8), 80);
  AddAt(Beside(), KibiBytes(80), 79);
  EXPECT_EQ(Found().outliving, Bytes(0));
  EXPECT_EQ(Found().others, KibiBytes(8)) << "where it lies in a place";
}

// From the start of the job, in which tokens are not those of the cycle.
TEST_F(InThePlansWay, WhatTheCycleHasLiveByNowIsNot) {
  AddAt(PlaceOf(5), KibiBytes(16), 7);
  EXPECT_EQ(Found(5).others, Bytes(0)) << "slot 1";
  AddAt(PlaceOf(6), KibiBytes(16), 6);
  EXPECT_EQ(Found(5).others, KibiBytes(16)) << "the older of two";
  EXPECT_EQ(Found(1).others, KibiBytes(32)) << "before slot 1 has come";
  EXPECT_EQ(Found(5).outliving, Bytes(0));
}

}  // namespace
}  // namespace reprise::replay
