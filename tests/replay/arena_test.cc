// Why: what is committed at once is what the job pays for, and a source that refuses must leave the arena as
// it was.
#include "replay/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "replay/counted_memory.h"

namespace reprise::replay {
namespace {

constexpr Bytes kGranule = Bytes(2 * kMiB.count());
constexpr auto kAnywhere = Arena::Where::kAnywhere;
constexpr auto kOutsidePlan = Arena::Where::kOutsidePlan;

TEST(Arena, CommitsWhatIsTouched) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  ASSERT_TRUE(arena.Place(Bytes(4096), Bytes(64), kAnywhere));
  EXPECT_EQ(memory.committed(), kGranule);
  ASSERT_TRUE(arena.Place(kGranule, Bytes(64), kAnywhere));
  EXPECT_EQ(memory.committed(), kGranule * 2);
}

TEST(Arena, MovesFreeGranulesBeforeAskingForMore) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const auto low = arena.Place(kGranule * 4, Bytes(1), kAnywhere);
  ASSERT_TRUE(arena.Place(kGranule, Bytes(1), kAnywhere));
  arena.Remove(low);
  ASSERT_TRUE(arena.Place(kGranule * 6, Bytes(1), kAnywhere)) << "does not fit the hole of four";
  EXPECT_EQ(memory.peak(), kGranule * 7) << "one live, six new, of which four were moved";
  EXPECT_EQ(arena.granules_moved(), 4);
}

TEST(Arena, RefusalLeavesTheRangeFree) {
  CountedMemory memory(kGranule, kGiB, /*capacity=*/kGranule * 2);
  Arena arena(&memory, Bytes(0));
  EXPECT_FALSE(arena.Place(kGranule * 3, Bytes(1), kAnywhere));
  EXPECT_TRUE(arena.Place(kGranule * 2, Bytes(1), kAnywhere));
  EXPECT_TRUE(arena.Consistent());
}

TEST(Arena, CapacityLimitsWhatIsCommitted) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, kGranule * 3);
  const auto block = arena.Place(kGranule * 3, Bytes(1), kAnywhere);
  ASSERT_TRUE(block);
  EXPECT_FALSE(arena.Place(Bytes(4096), Bytes(1), kAnywhere));
  arena.Remove(block);
  EXPECT_TRUE(arena.Place(Bytes(4096), Bytes(1), kAnywhere));
  EXPECT_LE(memory.peak(), kGranule * 3);
}

TEST(Arena, WhatTheCapacityForbidsCostsNothing) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, kGranule * 8);
  const auto free = arena.Place(kGranule * 4, Bytes(1), kAnywhere);
  const auto live = arena.Place(kGranule * 2, Bytes(1), kAnywhere);
  arena.Remove(free);  // too small a hole for what comes
  EXPECT_FALSE(arena.Place(kGranule * 7, Bytes(1), kAnywhere));
  EXPECT_EQ(arena.committed(), kGranule * 6);
  EXPECT_EQ(arena.granules_moved(), 0);
  EXPECT_TRUE(arena.Place(kGranule * 6, Bytes(1), kAnywhere));
  EXPECT_TRUE(live);
}

TEST(Arena, IdleIsWhatCanBeGivenBack) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  EXPECT_EQ(arena.idle(), Bytes(0));
  std::vector<Arena::Block> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(arena.Place(Bytes(kGranule.count() / 4), Bytes(1), kAnywhere));
  blocks.push_back(arena.Place(Bytes(kGranule.count() * 3 / 2), Bytes(1), kAnywhere));
  const auto small = arena.Place(Bytes(256), Bytes(1), kAnywhere);
  EXPECT_EQ(arena.idle(), Bytes(0));
  for (int i = 0; i < 64; ++i) {
    if (i % 8 != 0) arena.Remove(blocks[i]);  // every second granule keeps a quarter
  }
  EXPECT_EQ(arena.idle(), kGranule * 8);
  arena.Remove(blocks[64]);
  EXPECT_EQ(arena.idle(), kGranule * 10);
  arena.Remove(small);
  EXPECT_EQ(arena.idle(), kGranule * 11);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), kGranule * 11);
  EXPECT_EQ(arena.idle(), Bytes(0));
}

TEST(Arena, PlacesAtAnOffsetOnce) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const auto block = arena.PlaceAt(Offset(1 << 20), Bytes(5000));
  ASSERT_TRUE(block);
  EXPECT_EQ(arena.OffsetOf(block), Offset(1 << 20));
  EXPECT_EQ(arena.SizeOf(block), Bytes(5120));
  EXPECT_FALSE(arena.PlaceAt(Offset((1 << 20) + 4608), Bytes(512)));
  EXPECT_TRUE(arena.PlaceAt(Offset((1 << 20) + 5120), Bytes(512)));
}

// A job may try how much there is: the low bits of what it asks for look like a small block.
TEST(Arena, WhatIsLargerThanAllOfItIsPlacedNowhere) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const Bytes huge = kUnit * (int64_t{1} << 32) + Bytes(1 << 20);
  arena.SetPlanEnd(Offset(0) + huge);
  EXPECT_EQ(arena.plan_end(), arena.main_end());
  EXPECT_FALSE(arena.PlaceAt(Offset(0), huge));
  EXPECT_FALSE(arena.PlaceAt(Offset(1 << 20), kGiB));
  EXPECT_FALSE(arena.Place(huge, Bytes(512), kAnywhere));
  EXPECT_EQ(arena.placed(), Bytes(0));
  EXPECT_TRUE(arena.PlaceAt(Offset(0), Bytes(1 << 20)));
}

TEST(Arena, AnAlignmentThatCannotBeKeptIsRefused) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  ASSERT_TRUE(arena.Place(Bytes(4096), Bytes(1), kAnywhere));
  for (const int64_t alignment : {kGiB.count() * 2, int64_t{1} << 40, int64_t{1} << 62})
    EXPECT_FALSE(arena.Place(Bytes(4096), Bytes(alignment), kAnywhere));
  const auto block = arena.Place(Bytes(4096), Bytes(kGiB.count() / 2), kAnywhere);
  EXPECT_EQ(arena.OffsetOf(block), Offset(kGiB.count() / 2));
}

TEST(Arena, BlocksOfADeviceLeaveNoTail) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const Bytes odd = kUnit * 17;
  const auto host = arena.Place(odd, Bytes(64), kAnywhere);
  EXPECT_EQ(arena.OffsetOf(arena.Place(odd, Bytes(64), kAnywhere)), arena.OffsetOf(host) + odd);
  const auto device = arena.Place(odd, Bytes(512), kAnywhere);
  EXPECT_EQ(arena.SizeOf(device), kUnit * 18);
  EXPECT_EQ(arena.OffsetOf(arena.Place(odd, Bytes(512), kAnywhere)), arena.OffsetOf(device) + kUnit * 18);
}

TEST(Arena, RefusesOffsetsOutsideTheMainZone) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  EXPECT_FALSE(arena.PlaceAt(Offset(kGiB.count() - 512), Bytes(512))) << "in the zone of small blocks";
  EXPECT_FALSE(arena.PlaceAt(Offset(int64_t{1} << 50), Bytes(512)));
  EXPECT_FALSE(arena.Place(Bytes(int64_t{1} << 50), Bytes(1), kAnywhere));
}

TEST(Arena, SmallBlocksHaveTheirOwnZone) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const auto small = arena.Place(Bytes(100), Bytes(64), kAnywhere);
  ASSERT_TRUE(small);
  EXPECT_GT(arena.OffsetOf(small), Offset(kGiB.count() / 2));
  EXPECT_TRUE(arena.Find(arena.OffsetOf(small)));
}

TEST(Arena, KnowsWhatIsPlaced) {
  CountedMemory memory(kGranule, kGiB, /*capacity=*/kGranule);
  Arena arena(&memory, Bytes(0));
  const auto block = arena.Place(Bytes(5000), Bytes(1), kAnywhere);
  EXPECT_EQ(arena.placed(), Bytes(5120));
  EXPECT_FALSE(arena.Place(kGranule, Bytes(1), kAnywhere));
  EXPECT_EQ(arena.placed(), Bytes(5120));
  arena.Remove(block);
  EXPECT_EQ(arena.placed(), Bytes(0));
}

// A device that has finished nothing until it is told so, and lets no stream wait for another.
class BusyDevice : public StreamEvents {
 public:
  explicit BusyDevice(bool has_events = false) : has_events_(has_events) {}
  Event Record(Stream) override { return has_events_ ? this : nullptr; }
  bool Wait(Stream, Event) override {
    ++waits;
    return false;
  }
  bool Complete(Event) override { return done; }
  bool Await(Event) override { return done = done || catches_up; }
  void Recycle(Stream, Event) override {}

  bool done = false;
  bool catches_up = false;  // when it is waited for
  int waits = 0;

 private:
  const bool has_events_;
};

TEST(Arena, FindsRoomBehindHoweverManyBlocksThatAreStillInUse) {
  CountedMemory memory(kGranule, kGiB);
  BusyDevice device;
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  constexpr Stream kFirst{0}, kSecond{1};
  std::vector<Arena::Block> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(arena.Place(kGranule, Bytes(1), kAnywhere, kFirst));
  for (const Arena::Block& block : blocks) arena.Remove(block, kFirst);
  const auto other = arena.Place(kGranule, Bytes(1), kAnywhere, kSecond);
  ASSERT_TRUE(other);
  EXPECT_EQ(arena.OffsetOf(other), Offset(kGranule.count() * 24));
}

TEST(Arena, GivesBackNoGranuleThatTheDeviceMayStillTouch) {
  CountedMemory memory(kGranule, kGiB);
  BusyDevice device(/*has_events=*/true);
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  for (const Stream stream : {Stream{0}, Stream{1}}) {
    arena.Remove(arena.Place(kGranule * 4, Bytes(1), kAnywhere, stream), stream);
  }
  const Bytes held = memory.committed();
  EXPECT_GE(held, kGranule * 4);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), Bytes(0));
  EXPECT_TRUE(arena.kept_busy());
  EXPECT_EQ(memory.committed(), held);
  device.done = true;
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), held);
  EXPECT_FALSE(arena.kept_busy());
}

TEST(Arena, GivesBackARunOfGranulesAsFarAsTheDeviceHasFinishedWithIt) {
  CountedMemory memory(kGranule, kGiB);
  BusyDevice device(/*has_events=*/true);
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  const Arena::Block busy = arena.Place(kGranule * 2, Bytes(1), kAnywhere, Stream{0});
  const Arena::Block finished = arena.Place(kGranule * 3, Bytes(1), kAnywhere, Stream{0});
  ASSERT_EQ(arena.OffsetOf(finished), Offset(0) + kGranule * 2) << "above it, in one free range later";
  arena.Remove(busy, Stream{0});
  arena.Remove(finished, kEveryStream);
  EXPECT_EQ(arena.GiveBack(/*plan_too=*/true), kGranule * 3);
  EXPECT_EQ(memory.committed(), kGranule * 2);
}

TEST(Arena, LetsTheDeviceCatchUpBeforeMoreIsHeldThanWasEverLive) {
  for (const bool catches_up : {true, false}) {
    CountedMemory memory(kGranule, kGiB);
    BusyDevice device(/*has_events=*/true);
    device.catches_up = catches_up;
    StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                      &device);
    Arena arena(&memory, Bytes(0), &order);
    arena.SetPlanEnd(Offset(0) + kGranule * 8);
    const Arena::Block planned = arena.PlaceAt(Offset(0), kGranule * 6, Stream{0});
    arena.Remove(planned, Stream{0});
    EXPECT_TRUE(arena.Place(kGranule, Bytes(1), Arena::Where::kOutsidePlan, Stream{0}));
    EXPECT_EQ(order.counters().host_waits, 0) << "there is room for one more than was live";
    EXPECT_TRUE(arena.Place(kGranule * 3, Bytes(1), Arena::Where::kOutsidePlan, Stream{0}));
    EXPECT_EQ(order.counters().host_waits, catches_up ? 1 : 0);
    EXPECT_EQ(memory.committed(), kGranule * (catches_up ? 7 : 10));
  }
}

TEST(Arena, LetsTheDeviceCatchUpForASixteenthOfWhatWasLiveThoughItHasForLittle) {
  for (const bool much : {false, true}) {
    CountedMemory memory(kGranule, kGiB);
    BusyDevice device(/*has_events=*/true);
    device.catches_up = true;
    StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                      &device);
    do {
      device.done = false;
      order.Freed(0, 1, Stream{0}, /*record=*/false);
    } while (order.WaitForFreed(StreamOrder::Spares::kLittle));
    const int64_t before = order.counters().host_waits;
    Arena arena(&memory, Bytes(0), &order);
    arena.SetPlanEnd(Offset(0) + kGranule * 64);
    arena.Remove(arena.PlaceAt(Offset(0), kGranule * 63, Stream{0}), Stream{0});
    const int64_t besides = much ? 4 : 3;
    EXPECT_TRUE(arena.Place(kGranule * (besides + 1), Bytes(1), kOutsidePlan, Stream{0}));
    EXPECT_EQ(order.counters().host_waits - before, much ? 1 : 0);
    EXPECT_EQ(memory.committed(), kGranule * (much ? 64 : 67));
  }
}

// A slab, which is held whatever is free in it.
class FixedMemory : public CountedMemory {
 public:
  using CountedMemory::CountedMemory;
  bool moves() const override { return false; }
};

TEST(Arena, WaitsForNoMemoryThatCannotMove) {
  FixedMemory memory(kGranule, kGiB);
  BusyDevice device(/*has_events=*/true);
  device.catches_up = true;
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  arena.SetPlanEnd(Offset(0) + kGranule * 8);
  arena.Remove(arena.PlaceAt(Offset(0), kGranule * 6, Stream{0}), Stream{0});
  EXPECT_TRUE(arena.Place(kGranule * 3, Bytes(1), Arena::Where::kOutsidePlan, Stream{0}));
  EXPECT_EQ(order.counters().host_waits, 0);
}

TEST(Arena, InMemoryThatCannotMoveAPlanDoesNotYield) {
  FixedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(0) + kGranule * 39);
  for (int64_t i = 0; i < 39; ++i) ASSERT_TRUE(arena.PlaceAt(Offset(0) + kGranule * i, Bytes(4096)));
  ASSERT_TRUE(arena.Place(kMiB, Bytes(1), kOutsidePlan));
  EXPECT_FALSE(arena.PlanYields()) << "what it took was for good, whoever lies in it";
}

TEST(Arena, WhatTheDeviceStillUsesCountsToTheCapacity) {
  CountedMemory memory(kGranule, kGiB);
  BusyDevice device;
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, kGranule * 4, &order);
  arena.Remove(arena.Place(kGranule * 3, Bytes(512), kAnywhere, Stream{0}), Stream{0});
  EXPECT_FALSE(arena.Place(kGranule * 2, Bytes(512), kAnywhere, Stream{1}));
  EXPECT_TRUE(arena.Place(kGranule, Bytes(512), kAnywhere, Stream{1}));
  EXPECT_EQ(memory.peak(), kGranule * 4);
}

TEST(Arena, WhereAStreamCannotBeMadeToWaitNothingIsPlaced) {
  CountedMemory memory(kGranule, kGiB, /*capacity=*/kGranule * 8);
  BusyDevice device(/*has_events=*/true);
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  ASSERT_TRUE(arena.Place(kGranule, Bytes(1), kAnywhere, Stream{1}));
  arena.Remove(arena.Place(kGranule * 7, Bytes(1), kAnywhere, Stream{0}), Stream{0});
  const Bytes before = arena.placed();
  EXPECT_FALSE(arena.Place(kGranule * 7, Bytes(1), kAnywhere, Stream{1}));
  EXPECT_GT(device.waits, 0);
  EXPECT_EQ(arena.placed(), before);
  EXPECT_TRUE(arena.Consistent());
}

// What a stream may have begins anywhere within a free range: behind what others have used and not finished with.
TEST(Arena, BlocksOfSeveralStreamsAreAlignedAndApartHoweverFullItIs) {
  CountedMemory memory(kGranule, kGranule * 24);
  BusyDevice device;
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  std::mt19937 random(7);
  struct Live {
    Arena::Block block;
    Offset begin, end;
    Stream stream;
  };
  std::vector<Live> live;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Stream stream{random() % 3};
    if (live.empty() || random() % 2 == 0) {
      const Bytes bytes(2048 + static_cast<int64_t>(random() % (kGranule.count() / (1 + random() % 16))));
      const Bytes alignment(int64_t{1} << (9 + random() % 10));
      const Arena::Block block = arena.Place(bytes, alignment, kAnywhere, stream);
      refused += !block;
      if (!block) continue;
      const Offset begin = arena.OffsetOf(block), end = begin + bytes;
      ASSERT_EQ(begin.count() % alignment.count(), 0);
      ASSERT_LE(end, Offset(kGranule.count() * 24));
      for (const Live& other : live) ASSERT_TRUE(end <= other.begin || other.end <= begin);
      live.push_back({block, begin, end, stream});
    } else {
      std::swap(live[random() % live.size()], live.back());
      arena.Remove(live.back().block, live.back().stream);
      live.pop_back();
    }
    if (i % 500 == 0) {
      ASSERT_TRUE(arena.Consistent());
      device.done = !device.done;
    }
  }
  EXPECT_GT(refused, 50) << "it has been full";
}

TEST(Arena, FindsOnlyLiveBlocks) {
  CountedMemory memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  const auto block = arena.Place(Bytes(8192), Bytes(1), kAnywhere);
  const Offset at = arena.OffsetOf(block);
  EXPECT_TRUE(arena.Find(at));
  EXPECT_FALSE(arena.Find(at + Bytes(1)));
  EXPECT_FALSE(arena.Find(at + Bytes(512)));
  arena.Remove(block);
  EXPECT_FALSE(arena.Find(at));
}

}  // namespace
}  // namespace reprise::replay
