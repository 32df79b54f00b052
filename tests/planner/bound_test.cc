// The bound decides when the search stops and what "optimal" means: it must never be above what can be
// reached. The comparison with brute force is in solvers_property_test.cc; here is what each term is worth.
#include "planner/bound.h"

#include <ctime>
#include <random>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

TEST(MaxLive, IsTheLargestSumAtOneTick) {
  EXPECT_EQ(MaxLive({}), Bytes(0));
  EXPECT_EQ(MaxLive({{Block(0, 4, 5), Block(2, 6, 3), Block(4, 8, 4)}}), Bytes(8));
}

TEST(MaxLive, CountsCyclesAndPinnedBuffers) {
  EXPECT_EQ(MaxLive({{Block(8, 12, 5), Block(1, 3, 4)}, 10}), Bytes(9));
  EXPECT_EQ(MaxLive({{Block(0, 2, 5), Pinned(1, 3, 7, 1000)}}), Bytes(12));
}

TEST(LowerBound, IsMaxLiveWithoutObstaclesAndAlignment) {
  EXPECT_EQ(LowerBound(Problem{}), Bytes(0));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 4, 5), Block(2, 6, 3), Block(4, 8, 4)}}), Bytes(8));
  EXPECT_EQ(LowerBound(Problem{{Block(8, 12, 5), Block(1, 3, 4)}, 10}), Bytes(9));
}

TEST(LowerBound, CountsAnObstacleOnlyIfTheSlabReachesPastIt) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5), Pinned(0, 2, 7, 5)}}), Bytes(5));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 3), Block(0, 2, 2), Pinned(0, 2, 7, 4)}}), Bytes(12));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5), Pinned(0, 2, 7, 1000)}}), Bytes(5));
  EXPECT_EQ(LowerBound(Problem{{Pinned(0, 2, 7, 4)}}), Bytes(0));
}

TEST(HeightOfLoad, TakesABufferForOneThatCanBeCut) {
  const Problem no_hole{{Block(0, 2, 5), Pinned(0, 2, 1, 4), Pinned(0, 2, 1, 9)}};
  EXPECT_EQ(HeightOfLoad(no_hole), Bytes(6));
  EXPECT_EQ(LowerBound(no_hole), Bytes(15));
  EXPECT_EQ(HeightOfLoad(Problem{{Block(0, 2, 5), Block(1, 3, 7)}}), Bytes(12));
}

TEST(LowerBound, CountsAnObstacleOnlyWhileItIsInUse) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5), Pinned(2, 4, 7, 0)}}), Bytes(5));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5), Pinned(3, 11, 7, 0)}, 10}), Bytes(12))
      << "it wraps into tick 0";
}

TEST(LowerBound, FillsTheRoomBetweenObstaclesFirst) {
  const Problem problem{{Pinned(0, 9, 10, 4), Pinned(0, 9, 10, 20), Pinned(0, 9, 10, 40), Block(0, 9, 4),
                         Block(0, 9, 6), Block(0, 9, 10), Block(0, 9, 1)}};
  EXPECT_EQ(LowerBound(problem), Bytes(51));
}

TEST(LowerBound, CountsWhatAlignmentWastesExceptAtTheTop) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5, 8), Block(0, 2, 9, 8)}}), Bytes(17)) << "9 below 5 ends at 21";
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 5, 8), Block(0, 2, 9, 4)}}), Bytes(17))
      << "all are multiples of 4";
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 8, 8), Pinned(0, 2, 5, 8), Block(0, 2, 8, 8)}}), Bytes(24));
}

TEST(LowerBound, ThePinnedOffsetsSetTheGrainToo) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 3, 4), Pinned(0, 2, 5, 3)}}), Bytes(3));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 3, 2), Block(0, 2, 1, 2), Pinned(0, 2, 5, 4)}}), Bytes(11));
}

TEST(LowerBound, CountsWhatTheCoarselyAlignedWasteAmongOthers) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 1, 64), Block(0, 2, 1, 64), Block(0, 2, 1, 64), Block(0, 2, 9)}}),
            Bytes(129));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 20, 24), Block(0, 2, 20, 40), Block(0, 2, 1, 3)}}), Bytes(44))
      << "two are multiples of 8";
}

// Who wastes the most is asked for in every slot: to look through its ranges for that would be quadratic.
TEST(LowerBound, OneBufferMayHaveVeryManyGaps) {
  constexpr int64_t kGaps = 200'000;
  Problem problem{{Block(0, 4 * kGaps + 1, 1, 64)}};
  for (int64_t i = 0; i < kGaps; ++i) {
    problem.buffers[0].gaps.push_back({Tick(4 * i + 1), Tick(4 * i + 3)});
    problem.buffers.push_back(Block(4 * i + 1, 4 * i + 2, 60, 64));
  }
  const clock_t begin = clock();
  EXPECT_EQ(LowerBound(problem), Bytes(60));
  EXPECT_LT(clock() - begin, 5 * CLOCKS_PER_SEC) << "a hundredth of that is enough";
  problem.buffers.push_back(Block(4 * kGaps, 4 * kGaps + 1, 60, 64));
  EXPECT_EQ(LowerBound(problem), Bytes(65))
      << "in use again after its last gap, 63 of its bytes wasted below or above";
}

TEST(LowerBound, ObstaclesTakeTheRowsWhoseFirstByteTheyHave) {
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 8, 8), Block(0, 2, 8, 8), Pinned(0, 2, 3, 7)}}), Bytes(24));
  EXPECT_EQ(LowerBound(Problem{{Block(0, 2, 7, 8), Block(0, 2, 7, 8), Pinned(0, 2, 1, 7)}}), Bytes(15));
}

TEST(LowerBound, ALargeBufferHasToLieAboveWhatLeavesItNoHole) {
  EXPECT_EQ(LowerBound(Problem{{Pinned(0, 2, 1, 4), Block(1, 9, 7), Pinned(8, 10, 1, 10)}}), Bytes(18));
  EXPECT_EQ(LowerBound(Problem{{Pinned(0, 2, 1, 4), Block(1, 9, 7), Pinned(9, 10, 1, 10)}}), Bytes(12));
  EXPECT_EQ(LowerBound(Problem{{Pinned(0, 2, 1, 4), Block(1, 9, 4), Pinned(8, 10, 1, 10)}}), Bytes(4));
  EXPECT_EQ(LowerBound(Problem{{Pinned(0, 2, 5, 2), Block(1, 9, 3, 4)}}), Bytes(11));
}

TEST(LowerBound, AddsUpLanesThatMayNotShareBytes) {
  Problem problem{
      {OnLane(0, Block(0, 2, 5)), OnLane(1, Block(2, 4, 3)), OnLane(0, Block(3, 5, 4)), Pinned(0, 9, 7, 99)}};
  EXPECT_EQ(LowerBound(problem), Bytes(7));
  problem.reuse = Reuse::kForbidden;
  EXPECT_EQ(LowerBound(problem), Bytes(8));
  problem.buffers[3].pinned = Offset(0);
  EXPECT_EQ(LowerBound(problem), Bytes(14)) << "at tick 3, where obstacles are in the way";
}

TEST(Gap, IsRelativeToTheBound) {
  EXPECT_DOUBLE_EQ(Gap(Bytes(150), Bytes(100)), 0.5);
  EXPECT_DOUBLE_EQ(Gap(Bytes(0), Bytes(0)), 0);
}

// One alignment or several, sizes that waste all kinds of bytes, many starts and ends at one tick.
TEST(RunningBound, IsTheBoundOfTheWholeProblem) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int64_t alignments[] = {1 + round % 3, 8, 16, 24};
    Problem problem;
    Grains grains;
    for (int i = 0; i < 30; ++i) {
      const auto lower = static_cast<int64_t>(random() % 20);
      const int64_t alignment = alignments[random() % (1 + static_cast<unsigned>(round) % 4)];
      problem.buffers.push_back(Block(lower, lower + 1 + static_cast<int64_t>(random() % 10),
                                      1 + static_cast<int64_t>(random() % 60), alignment));
      grains.Add(alignment);
    }
    RunningBound running(grains);
    for (Tick now(0); now < Tick(40); now = now + 1) {
      for (const Buffer& buffer : problem.buffers) {
        if (buffer.upper == now) running.Stop(buffer.size, buffer.alignment);
      }
      for (const Buffer& buffer : problem.buffers) {
        if (buffer.lower == now) running.Start(buffer.size, buffer.alignment);
      }
    }
    ASSERT_EQ(running.bound(), LowerBound(problem)) << round;
  }
}

}  // namespace
}  // namespace reprise::planner
