// Why: to take the memory that another stream has just left costs the device time, and to take more costs the job memory that
// it may not have; and where there is no more, the job must go on with what there is.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "replay/arena.h"
#include "replay/counted_memory.h"

namespace reprise::replay {
namespace {

class ArenaOfStreams : public testing::Test {
 protected:
  static constexpr Bytes kGranule = Bytes(2 * kMiB.count());
  static constexpr Bytes kHalf = kMiB;  // of it
  static constexpr auto kAnywhere = Arena::Where::kAnywhere;
  static constexpr auto kOutsidePlan = Arena::Where::kOutsidePlan;
  static constexpr Stream kFirst{0};
  static constexpr Stream kSecond{1};

  // A device that finishes nothing until it is told to, or waited for. Streams wait for one another as they should.
  class SlowDevice : public StreamEvents {
   public:
    Event Record(Stream) override { return this; }
    bool Wait(Stream, Event) override { return true; }
    bool Complete(Event) override { return done; }
    bool Await(Event) override { return done = true; }
    void Recycle(Stream, Event) override {}

    bool done = false;
  };

  class Memory : public CountedMemory {
   public:
    using CountedMemory::CountedMemory;
    bool moves() const override { return can_move; }

    bool can_move = true;
  };

  struct Streams {
    explicit Streams(Arena::Rules rules = {}, Bytes memory = kGiB, Bytes capacity = Bytes(0))
        : memory(kGranule, kGiB, memory),
          order(Arena::UnitsOf(this->memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                &device),
          arena(&this->memory, capacity, &order, rules) {}

    Arena::Block Take(int64_t granules, Stream stream) {
      return arena.Place(kGranule * granules, Bytes(1), kAnywhere, stream);
    }
    // So many blocks come and go, of which no stream hears.
    void GoOn(int times) {
      for (int i = 0; i < times; ++i)
        arena.Remove(arena.Place(kSmallBlock, Bytes(1), kAnywhere), kEveryStream);
    }

    SlowDevice device;
    Memory memory;
    StreamOrder order;
    Arena arena;
  };

  // Of 33 granules at most 32 are the first stream's and were just left by it, and the second wants some.
  static void LeaveMuch(Streams& streams) {
    streams.Take(1, kSecond);
    streams.arena.Remove(streams.Take(32, kFirst), kFirst);
  }
};

TEST_F(ArenaOfStreams, MoreIsHeldSoonerThanAStreamWaitsForAnother) {
  for (const bool rule : {true, false}) {
    Streams streams({.for_streams = rule});
    LeaveMuch(streams);
    streams.GoOn(40);
    ASSERT_TRUE(streams.Take(4, kSecond));
    EXPECT_EQ(streams.order.counters().waits, rule ? 0 : 1);
    EXPECT_EQ(streams.memory.committed(), kGranule * (rule ? 37 : 33));
    EXPECT_EQ(streams.order.counters().host_waits, 0);
    ASSERT_TRUE(streams.Take(2, kSecond));
    EXPECT_EQ(streams.order.counters().waits, 1) << "an eighth of the 34 is as much as is held for it";
    EXPECT_LE(streams.memory.committed(), kGranule * 38);
  }
}

TEST_F(ArenaOfStreams, WhatOnlyMovesForThemIsNotHeldBesides) {
  Streams streams;
  std::vector<Arena::Block> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(streams.Take(1, kSecond));
  const auto much = streams.Take(32, kFirst);
  streams.GoOn(80);
  for (size_t i = 0; i < pieces.size(); i += 2) streams.arena.Remove(pieces[i], kEveryStream);
  streams.arena.Remove(much, kFirst);
  ASSERT_TRUE(streams.Take(4, kSecond));
  EXPECT_EQ(streams.order.counters().waits, 0);
  EXPECT_EQ(streams.memory.committed(), kGranule * 41);
  EXPECT_EQ(streams.arena.for_streams(), Bytes(0));
}

TEST_F(ArenaOfStreams, NothingIsHeldForThemWhileAPlanMayStillCome) {
  Streams streams;
  LeaveMuch(streams);
  ASSERT_TRUE(streams.Take(4, kSecond));
  EXPECT_EQ(streams.order.counters().waits, 1) << "it has hardly begun";

  Streams growing({.waits = false});
  LeaveMuch(growing);
  growing.GoOn(40);
  ASSERT_TRUE(growing.arena.PlaceAt(Offset(0) + kGranule * 40, kGranule * 34, kSecond));
  ASSERT_TRUE(growing.Take(4, kSecond));
  EXPECT_EQ(growing.order.counters().waits, 1) << "it has just become larger";
  growing.GoOn(9 * 44);
  ASSERT_TRUE(growing.Take(4, kSecond));
  EXPECT_EQ(growing.order.counters().waits, 1);
}

TEST_F(ArenaOfStreams, NothingIsHeldForThemWhereAPlanDoesIt) {
  Streams streams;
  LeaveMuch(streams);
  streams.arena.SetPlanEnd(Offset(0) + kGranule * 8);
  for (int i = 0; i < 40; ++i) {
    const auto block = streams.arena.PlaceAt(Offset(0) + kGranule * 7, kGranule, kFirst);
    ASSERT_TRUE(block);
    streams.arena.Remove(block, kEveryStream);
  }
  streams.GoOn(30);
  ASSERT_TRUE(streams.Take(4, kSecond));
  EXPECT_EQ(streams.order.counters().waits, 1);
  streams.GoOn(30);
  ASSERT_TRUE(streams.Take(4, kSecond));
  EXPECT_EQ(streams.order.counters().waits, 1) << "of most there is none";
}

TEST_F(ArenaOfStreams, WhatIsHeldForThemIsNoReasonToMoveAnythingNorToGiveAPlanUp) {
  Streams streams;
  LeaveMuch(streams);
  streams.GoOn(40);
  ASSERT_TRUE(streams.Take(4, kSecond));
  EXPECT_EQ(streams.arena.for_streams(), kGranule * 3);
  streams.arena.SetPlanEnd(Offset(0) + kGranule * 8);
  streams.arena.PlanHasSettled();
  ASSERT_TRUE(streams.arena.Place(kGranule, Bytes(1), kOutsidePlan, kSecond));
  EXPECT_EQ(streams.memory.committed(), kGranule * 38);
  EXPECT_EQ(streams.arena.granules_moved(), 0);
  EXPECT_FALSE(streams.arena.PlanYields());
  streams.arena.SetForLag(Bytes(0));
  EXPECT_EQ(streams.arena.for_streams(), Bytes(0)) << "a plan that has just come into use has what it keeps";
}

TEST_F(ArenaOfStreams, WhereThereIsNoMoreMemoryTheyWait) {
  for (const bool is_told : {true, false}) {  // by the job's limit, or by the driver
    Streams streams({}, is_told ? kGiB : kGranule * 35, is_told ? kGranule * 35 : Bytes(0));
    LeaveMuch(streams);
    streams.GoOn(40);
    if (!is_told) {
      EXPECT_EQ(streams.arena.most_to_be_had(), kAllOfIt);
    }
    ASSERT_TRUE(streams.Take(4, kSecond));
    EXPECT_LE(streams.memory.peak(), kGranule * 35);
    if (is_told) {
      EXPECT_EQ(streams.order.counters().host_waits, 0) << "for another stream's, on the device";
    }
  }
}

// What is behind a wait will do where new memory is refused, though nobody has known that before. It lies in a granule that
// cannot move.
TEST_F(ArenaOfStreams, WhatIsRefusedForThemIsServedBehindAWait) {
  for (const bool moves : {true, false}) {
    Streams streams({}, kGranule * 35);
    streams.memory.can_move = moves;
    streams.Take(34, kSecond);
    const auto take_half = [&](Stream stream) {
      return streams.arena.Place(kHalf, Bytes(1), kAnywhere, stream);
    };
    const auto before = take_half(kFirst);
    ASSERT_TRUE(take_half(kSecond));
    streams.arena.Remove(before, kEveryStream);
    streams.GoOn(40);
    streams.arena.Remove(take_half(kFirst), kFirst);
    EXPECT_TRUE(take_half(kSecond)) << moves;
    EXPECT_EQ(streams.order.counters().waits, 1);
    EXPECT_EQ(streams.memory.peak(), kGranule * 35);
  }
}

// It has been taken in one piece, and whatever lies beside that is refused.
TEST_F(ArenaOfStreams, WhereMemoryDoesNotMoveARefusalSaysNothingOfHowMuchThereIs) {
  Streams streams({}, kGranule * 8);
  streams.memory.can_move = false;
  EXPECT_FALSE(streams.Take(9, kFirst));
  EXPECT_EQ(streams.arena.most_to_be_had(), kAllOfIt);
}

TEST_F(ArenaOfStreams, ThatMuchWasRefusedSaysNothingOfLess) {
  Streams streams({}, kGranule * 8);
  EXPECT_FALSE(streams.Take(9, kFirst));
  EXPECT_FALSE(streams.Take(100, kFirst));
  EXPECT_EQ(streams.arena.most_to_be_had(), kGranule * 8);
}

// By as much as is lacking: the rest is the plan's to use again.
TEST_F(ArenaOfStreams, WhereThereIsNoMoreMemoryAPlanGivesWhatIsLacking) {
  CountedMemory memory(kGranule, kGiB, /*capacity=*/kGranule * 50);
  Arena arena(&memory, Bytes(0));
  arena.SetPlanEnd(Offset(0) + kGranule * 49);
  const auto other = arena.Place(kGranule, Bytes(1), kOutsidePlan);
  arena.Remove(arena.PlaceAt(Offset(0), kGranule * 49));
  arena.PlanHasSettled();
  arena.SetForLag(kGranule * 40);
  ASSERT_TRUE(arena.Place(kGranule * 2, Bytes(1), kOutsidePlan));
  EXPECT_EQ(arena.granules_moved(), 2);
  EXPECT_EQ(memory.committed(), kGranule * 50);
  EXPECT_EQ(arena.most_to_be_had(), kGranule * 51) << "that one of the two was to be had is not known";
  ASSERT_TRUE(arena.Place(kGranule * 2, Bytes(1), kOutsidePlan));
  EXPECT_EQ(arena.most_to_be_had(), kGranule * 50);
  ASSERT_TRUE(arena.Place(kGranule, Bytes(1), kOutsidePlan));
  arena.Remove(other);
}

TEST_F(ArenaOfStreams, WhereThereIsNoMoreMemoryAllThatIsFreeIsGivenBackAtLast) {
  CountedMemory memory(kGranule, kGiB, /*capacity=*/kGranule * 2);
  Arena arena(&memory, Bytes(0));
  const Bytes half(kGranule.count() / 2);
  arena.SetPlanEnd(Offset(0) + half);
  arena.Remove(arena.PlaceAt(Offset(0), half));
  EXPECT_TRUE(arena.Place(kGranule * 2, kGranule, kOutsidePlan)) << "the plan ends within what was free";
}

// Somebody else may have had it, and may have left it by now.
TEST_F(ArenaOfStreams, WhatThereIsIsAskedForAgain) {
  class Shared : public CountedMemory {
   public:
    using CountedMemory::CountedMemory;
    bool Commit(int64_t first, int64_t count) override {
      return !others_have_it && CountedMemory::Commit(first, count);
    }
    bool others_have_it = false;
  } memory(kGranule, kGiB);
  Arena arena(&memory, Bytes(0));
  ASSERT_TRUE(arena.Place(kGranule * 4 - kSmallBlock, Bytes(1), kAnywhere));
  for (const bool waits : {true, false}) {
    memory.others_have_it = true;
    EXPECT_FALSE(arena.Place(kGranule, Bytes(1), kAnywhere));
    EXPECT_EQ(arena.most_to_be_had(), memory.committed());
    memory.others_have_it = false;
    if (waits) {
      const auto block = arena.Place(kGranule, Bytes(1), kAnywhere);
      ASSERT_TRUE(block) << "what somebody needs is asked for at once";
    } else {
      for (int i = 0; i < (1 << 16); ++i) arena.Remove(arena.Place(kSmallBlock, Bytes(1), kAnywhere));
    }
    EXPECT_EQ(arena.most_to_be_had(), kAllOfIt);
  }
}

// What the device has not finished with cannot be given back; a request that would fail waits for it, however often.
TEST_F(ArenaOfStreams, WhereThereIsNoMoreMemoryTheHostWaits) {
  Streams streams({.waits = false}, kGranule * 8);
  const auto low = streams.Take(3, kFirst);
  ASSERT_TRUE(streams.Take(1, kFirst)) << "which keeps apart what is free";
  streams.arena.Remove(low, kFirst);
  for (int i = 0; i < 1000; ++i) {
    streams.device.done = false;
    const int64_t granules = i % 2 == 0 ? 6 : 3;  // above it, and below, where the other has had its memory
    const auto block = streams.Take(granules, kFirst);
    ASSERT_TRUE(block) << i;
    streams.arena.Remove(block, kFirst);
  }
  EXPECT_GE(streams.order.counters().host_waits, 500);
  streams.device.done = false;
  streams.order.Freed(0, 1, kFirst, /*record=*/false);
  EXPECT_TRUE(streams.order.WaitForFreed(StreamOrder::Spares::kLittle)) << "those have a ration of their own";
  do {
    streams.device.done = false;
    streams.order.Freed(0, static_cast<uint32_t>(kGranule / kUnit) * 3, kFirst, /*record=*/false);
  } while (streams.order.WaitForFreed(StreamOrder::Spares::kLittle));
  EXPECT_TRUE(streams.Take(6, kFirst)) << "though it is used up";
  EXPECT_LE(streams.memory.peak(), kGranule * 8);
  EXPECT_TRUE(streams.arena.Consistent());
}

// A slab has all its memory for good: nothing is to be had by waiting.
TEST_F(ArenaOfStreams, WhatCannotMoveIsNotWaitedFor) {
  class Slab : public CountedMemory {
   public:
    using CountedMemory::CountedMemory;
    bool moves() const override { return false; }
  } memory(kGranule, kGiB, /*capacity=*/kGranule * 8);
  SlowDevice device;
  StreamOrder order(Arena::UnitsOf(memory), std::countr_zero(static_cast<uint64_t>(kGranule / kUnit)),
                    &device);
  Arena arena(&memory, Bytes(0), &order);
  const auto low = arena.Place(kGranule * 3, Bytes(1), kAnywhere, kFirst);
  ASSERT_TRUE(arena.Place(kGranule, Bytes(1), kAnywhere, kFirst));
  arena.Remove(low, kFirst);
  arena.Place(kGranule * 6, Bytes(1), kAnywhere, kFirst);
  EXPECT_EQ(order.counters().host_waits, 0);
}

}  // namespace
}  // namespace reprise::replay
