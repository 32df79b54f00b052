// Why: the driver's pool and the arena stand for rules that their headers state; each is held by a case.
#include <gtest/gtest.h>

#include "replay/models/bfc_arena.h"
#include "replay/models/driver_pool.h"
#include "tests/replay/models/small.h"

namespace reprise::replay {
namespace {

constexpr Bytes kOneAndAnEighth{9 << 17};

TEST(DriverPool, GrowsByWholeChunks) {
  DriverPool model(kNoLimit);
  model.Allocate(Bytes(1), kA);
  EXPECT_EQ(model.reserved(), MiB(32));
  EXPECT_EQ(model.allocated(), Bytes(512));
  model.Allocate(MiB(40), kA);
  EXPECT_EQ(model.reserved(), MiB(96));
  EXPECT_EQ(model.driver_allocations(), 2);
}

// CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: the device is done with what is free.
TEST(DriverPool, WhatIsFreeIsEveryStreams) {
  DriverPool model(kNoLimit);
  const Offset block = *model.Allocate(MiB(32), kA);
  model.Free(block, kA);
  EXPECT_EQ(model.Allocate(MiB(32), kB), block);
  EXPECT_EQ(model.reserved(), MiB(32));
}

TEST(DriverPool, NeighboursJoinWhoeverFreedThem) {
  DriverPool model(kNoLimit);
  const Offset first = *model.Allocate(MiB(8), kA), second = *model.Allocate(MiB(8), kA);
  model.Free(first, kA);
  model.Free(second, kB);
  EXPECT_EQ(model.Allocate(MiB(32), kA), first) << "with what was never used";
  EXPECT_EQ(model.reserved(), MiB(32));
}

TEST(DriverPool, OutOfMemoryOnlyFreeChunksGoBack) {
  DriverPool model(MiB(96));
  model.Allocate(MiB(1), kA);
  model.Free(*model.Allocate(MiB(32), kA), kA);
  EXPECT_TRUE(model.Allocate(MiB(64), kA).has_value());
  EXPECT_EQ(model.reserved(), MiB(96));
  EXPECT_FALSE(model.Allocate(MiB(32), kA).has_value());
}

TEST(BfcArena, NothingIsLostAtTheEndOfTheRange) {
  BfcArena model(kNoLimit);
  for (int i = 0; i < 100; ++i) model.Allocate(kOneAndAnEighth, kA);
  EXPECT_EQ(model.allocated(), (kOneAndAnEighth)*100);
  EXPECT_EQ(model.reserved(), MiB(114)) << "112.5 MiB, in steps of two";
}

TEST(BfcArena, TheEndIsTakenLast) {
  BfcArena model(kNoLimit);
  const Offset block = *model.Allocate(MiB(40), kA);
  model.Allocate(MiB(1), kA);
  model.Free(block, kA);
  EXPECT_EQ(model.Allocate(MiB(30), kA), block) << "though the range behind is free, too";
}

TEST(BfcArena, TheCapacityIsTheRange) {
  BfcArena model(MiB(5));
  const Offset block = *model.Allocate(MiB(3), kA);
  EXPECT_EQ(model.allocated(), MiB(5)) << "2 MiB stay with the block: less than its double";
  EXPECT_EQ(model.reserved(), MiB(5));
  EXPECT_FALSE(model.Allocate(MiB(1), kA).has_value());
  model.Free(block, kA);
  EXPECT_TRUE(model.Allocate(MiB(5), kA).has_value());
}

TEST(BfcArena, SplitsFromTheDoubleOn) {
  BfcArena model(kNoLimit);
  const Offset block = *model.Allocate(MiB(8), kA);
  model.Allocate(MiB(2), kA);
  model.Free(block, kA);
  const Offset less = *model.Allocate(MiB(4) + Bytes(256), kA);
  EXPECT_EQ(less, block);
  EXPECT_EQ(model.allocated(), MiB(10)) << "all 8 MiB";
  model.Free(less, kA);
  model.Allocate(MiB(4), kA);
  EXPECT_EQ(model.allocated(), MiB(6));
}

TEST(BfcArena, SplitsWhereMuchWouldBeWasted) {
  BfcArena model(kNoLimit);
  const Offset block = *model.Allocate(MiB(300), kA);
  model.Free(block, kA);
  model.Allocate(MiB(172), kA);
  EXPECT_EQ(model.allocated(), MiB(172)) << "128 MiB are too much to leave with it";
}

TEST(PlainArena, SplitsAlways) {
  BfcArena model(kNoLimit, BfcArena::Kind::kPlain);
  const Offset block = *model.Allocate(MiB(8), kA);
  model.Allocate(MiB(2), kA);
  model.Free(block, kA);
  model.Allocate(MiB(7), kA);
  EXPECT_EQ(model.allocated(), MiB(9));
  EXPECT_EQ(model.Allocate(MiB(1), kA), block + MiB(7));
  EXPECT_EQ(model.reserved(), MiB(10));
}

TEST(BfcArena, StreamsShareAndNeighboursJoin) {
  BfcArena model(kNoLimit);
  const Offset first = *model.Allocate(MiB(2), kA), second = *model.Allocate(MiB(2), kB);
  model.Allocate(MiB(2), kA);
  model.Free(second, kB);
  model.Free(first, kA);
  EXPECT_EQ(model.Allocate(MiB(4), kB), first);
  EXPECT_EQ(model.reserved(), MiB(6));
}

}  // namespace
}  // namespace reprise::replay
