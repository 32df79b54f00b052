// Why: the models of PyTorch's allocator stand for its rules, so each rule is held by a case small enough to
// be worked out by hand.
#include <gtest/gtest.h>

#include "replay/models/torch_expandable.h"
#include "replay/models/torch_native.h"
#include "replay/models/torch_sizes.h"
#include "tests/replay/models/small.h"

namespace reprise::replay {
namespace {

TEST(TorchSizes, RoundsToUnits) {
  EXPECT_EQ(TorchRounded(Bytes(1)), Bytes(512));
  EXPECT_EQ(TorchRounded(Bytes(512)), Bytes(512));
  EXPECT_EQ(TorchRounded(Bytes(513)), Bytes(1024));
}

TEST(TorchNative, SmallBlocksShareASegmentOf2MiB) {
  TorchNative model(kNoLimit);
  for (int i = 0; i < 2; ++i) model.Allocate(MiB(1), kA);
  EXPECT_EQ(model.reserved(), MiB(2));
  EXPECT_EQ(model.allocated(), MiB(2));
  model.Allocate(Bytes(1), kA);
  EXPECT_EQ(model.reserved(), MiB(4));
  EXPECT_EQ(model.allocated(), MiB(2) + Bytes(512));
}

TEST(TorchNative, BlocksBelow10MiBShareASegmentOf20MiB) {
  TorchNative model(kNoLimit);
  for (int i = 0; i < 10; ++i) model.Allocate(MiB(2), kA);
  EXPECT_EQ(model.reserved(), MiB(20));
  model.Allocate(MiB(10) - Bytes(512), kA);
  EXPECT_EQ(model.reserved(), MiB(40));
}

TEST(TorchNative, LargerOnesHaveTheirOwnOfWhole2MiB) {
  TorchNative model(kNoLimit);
  model.Allocate(MiB(10), kA);
  EXPECT_EQ(model.reserved(), MiB(10));
  model.Allocate(MiB(11), kA);
  EXPECT_EQ(model.reserved(), MiB(22));
}

TEST(TorchNative, ARestOf1MiBStaysWithALargeBlockAndMoreDoesNot) {
  TorchNative model(kNoLimit);
  model.Allocate(MiB(11), kA);
  EXPECT_EQ(model.allocated(), MiB(12));
  TorchNative other(kNoLimit);
  other.Allocate(MiB(11) - Bytes(512), kA);
  EXPECT_EQ(other.allocated(), MiB(11) - Bytes(512));
}

TEST(TorchNative, PoolsAndStreamsAreApart) {
  TorchNative model(kNoLimit);
  model.Free(*model.Allocate(MiB(20), kA), kA);
  model.Allocate(Bytes(1000), kA);
  EXPECT_EQ(model.reserved(), MiB(22)) << "a small block out of the large pool";
  model.Allocate(MiB(20), kB);
  EXPECT_EQ(model.reserved(), MiB(42)) << "a block of another stream's";
}

TEST(TorchNative, ABlockReturnsToTheStreamItWasAllocatedOn) {
  TorchNative model(kNoLimit);
  const Offset block = *model.Allocate(MiB(20), kA);
  model.Free(block, kB);
  EXPECT_EQ(model.Allocate(MiB(20), kA), block);
}

TEST(TorchNative, TakesTheSmallestThatIsLargeEnough) {
  TorchNative model(kNoLimit);
  const Offset large = *model.Allocate(MiB(40), kA), fitting = *model.Allocate(MiB(30), kA);
  model.Allocate(MiB(20), kA);
  model.Free(large, kA);
  model.Free(fitting, kA);
  EXPECT_EQ(model.Allocate(MiB(25), kA), fitting);
}

TEST(TorchNative, FreeNeighboursJoin) {
  TorchNative model(kNoLimit);
  const Offset first = *model.Allocate(MiB(6), kA), second = *model.Allocate(MiB(6), kA);
  model.Allocate(MiB(6), kA);
  model.Free(first, kA);
  model.Free(second, kA);
  EXPECT_EQ(model.Allocate(MiB(12), kA), first);
  EXPECT_EQ(model.reserved(), MiB(20));
}

TEST(TorchNative, SegmentsInUseAreNotGivenBack) {
  TorchNative model(MiB(40));
  const Offset first = *model.Allocate(MiB(9), kA);
  model.Allocate(MiB(9), kA);  // in the same segment
  model.Free(*model.Allocate(MiB(20), kA), kA);
  model.Free(first, kA);
  EXPECT_FALSE(model.Allocate(MiB(22), kA).has_value());
  EXPECT_EQ(model.reserved(), MiB(20)) << "the free segment went back, the one in use stayed";
}

TEST(TorchNative, ContinuesFromALayout) {
  TorchNative model(kNoLimit);
  model.AdoptSegment(Offset(0), MiB(20), kA,
                     {{Offset(MiB(2).count()), MiB(4)}, {Offset(MiB(16).count()), MiB(4)}});
  EXPECT_EQ(model.reserved(), MiB(20));
  EXPECT_EQ(model.allocated(), MiB(8));
  EXPECT_EQ(model.driver_allocations(), 0);
  EXPECT_EQ(model.Allocate(MiB(2), kA), Offset(0));
  EXPECT_EQ(model.Allocate(MiB(10), kA), Offset(MiB(6).count()));
  EXPECT_TRUE(model.Free(Offset(MiB(2).count()), kA));
  EXPECT_GE(*model.Allocate(MiB(20), kA), Offset(MiB(20).count())) << "new segments lie elsewhere";
}

TEST(TorchExpandable, MapsPiecesOf2MiBForSmallAnd20MiBForLargeBlocks) {
  TorchExpandable model(kNoLimit);
  model.Allocate(Bytes(1), kA);
  EXPECT_EQ(model.reserved(), MiB(2));
  model.Allocate(MiB(11), kA);
  EXPECT_EQ(model.reserved(), MiB(22));
  EXPECT_EQ(model.allocated(), MiB(11) + Bytes(512)) << "split to the unit";
  model.Allocate(MiB(11), kA);
  EXPECT_EQ(model.reserved(), MiB(42)) << "the second lies across the end of the first piece";
}

TEST(TorchExpandable, GrowsTheFreeBlockAtTheEnd) {
  TorchExpandable model(kNoLimit);
  const Offset block = *model.Allocate(MiB(15), kA);
  model.Free(block, kA);
  EXPECT_EQ(model.Allocate(MiB(35), kA), block);
  EXPECT_EQ(model.reserved(), MiB(40));
}

TEST(TorchExpandable, PrefersAGapToTheEndThatCouldGrow) {
  TorchExpandable model(kNoLimit);
  const Offset gap = *model.Allocate(MiB(12), kA);
  model.Allocate(MiB(20), kA);  // [12, 32) of 40: 8 MiB are free at the end
  model.Free(gap, kA);
  EXPECT_EQ(model.Allocate(MiB(8), kA), gap) << "though the 8 MiB at the end would fit best";
}

TEST(TorchExpandable, UnmapsWholePiecesWithinASegment) {
  TorchExpandable model(MiB(60));
  model.Allocate(MiB(19), kA);
  const Offset middle = *model.Allocate(MiB(22), kA);  // [19, 41): the piece [20, 40) is all its own
  model.Allocate(MiB(19), kA);
  EXPECT_EQ(model.reserved(), MiB(60));
  model.Free(middle, kA);
  EXPECT_TRUE(model.Allocate(MiB(20), kB).has_value());
  EXPECT_EQ(model.reserved(), MiB(60));
  EXPECT_FALSE(model.Allocate(MiB(22), kA).has_value());
  EXPECT_TRUE(model.Allocate(Bytes(MiB(1).count() + 1), kA).has_value() == false)
      << "1 MiB is left at either end";
}

}  // namespace
}  // namespace reprise::replay
