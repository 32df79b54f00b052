// Follows the heuristic of Sekiyama et al. by hand on cases small enough to see: lowest line, longest
// lifetime that fits, lift and merge; then what was added to it: rings, obstacles, alignment.
#include "planner/best_fit.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/orders.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

std::vector<int64_t> Offsets(const Problem& problem) {
  const Instance instance = Compress(problem);
  Search search(instance, 0, {});
  BestFit best_fit(instance);
  best_fit.Begin(SortedBy(Order::kLifetime, instance));
  EXPECT_TRUE(best_fit.Place(search));
  return best_fit.offsets();
}

TEST(BestFit, LongestLifetimeGoesOnTheLowestLine) {
  // 2 spans everything and is the floor; 1 is longer than 3, though smaller, and takes the right half; 3 and
  // 4 lie on it.
  EXPECT_THAT(Offsets({{Block(0, 1, 5), Block(1, 3, 2), Block(0, 3, 1), Block(2, 3, 9), Block(1, 2, 1)}}),
              ElementsAre(1, 1, 0, 3, 3));
}

TEST(BestFit, LiftsALineThatNothingFitsAndMergesIt) {
  // 1 and 0 are the floor, 3 lies on the right of 1. The hole left of it, at height 3, fits nothing: it is
  // lifted to 7, the top of 3, and both to 9, the top of 0, where 2 fits.
  EXPECT_THAT(Offsets({{Block(0, 1, 9), Block(1, 3, 3), Block(0, 2, 2), Block(2, 3, 4)}}),
              ElementsAre(0, 0, 9, 3));
}

TEST(BestFit, AChainGoesBeforeTheBestOne) {
  // 1 is the longest. 2 and 3 fill the line together; beside 1 a part of it stays free.
  const Problem problem{{Block(0, 10, 1), Block(2, 8, 1), Block(0, 5, 1), Block(5, 10, 1), Block(0, 1, 9),
                         Block(9, 10, 9), Block(3, 4, 1), Block(6, 7, 1), Block(2, 3, 1), Block(7, 8, 1)}};
  const Instance instance = Compress(problem);
  Search search(instance, 0, {});
  BestFit best_fit(instance);
  std::vector<double> values;
  for (int32_t i = 0; i < instance.buffers(); ++i) values.push_back(instance.length(i));
  const std::vector<int32_t> order = SortedBy(Order::kLifetime, instance);
  best_fit.Begin(order, values);
  ASSERT_TRUE(best_fit.Place(search));
  EXPECT_EQ(best_fit.offsets()[2], 1);
  EXPECT_EQ(best_fit.offsets()[3], 1);
  best_fit.Begin(order);
  ASSERT_TRUE(best_fit.Place(search));
  EXPECT_EQ(best_fit.offsets()[1], 1);
}

TEST(BestFit, AmongEqualLifetimesTheLarger) {
  EXPECT_THAT(Offsets({{Block(0, 1, 3), Block(0, 1, 7), Block(0, 1, 5)}}), ElementsAre(12, 0, 7));
}

TEST(BestFit, ClosesTheSkylineToARing) {
  // 0 covers the end and the beginning of the cycle, 1 the middle; 2 needs all of it.
  EXPECT_THAT(Offsets({{Block(7, 13, 4), Block(3, 7, 4), Block(5, 15, 1)}, 10}), ElementsAre(1, 1, 0));
  // 2 begins in the part of 0's top that is in the next lap.
  EXPECT_THAT(Offsets({{Block(7, 13, 4), Block(3, 7, 9), Block(1, 3, 2)}, 10}), ElementsAre(0, 0, 4));
  EXPECT_THAT(Offsets({{Block(8, 12, 4), Block(9, 11, 2), Block(0, 1, 2)}, 10}), ElementsAre(0, 4, 6));
}

TEST(BestFit, FillsTheBandsBetweenObstacles) {
  // 4 bytes fit below the obstacle, 6 do not; the obstacle counts in the half where it is not in use, too.
  EXPECT_THAT(Offsets({{Pinned(0, 4, 3, 5), Block(0, 4, 6), Block(0, 4, 4), Block(4, 5, 6)}}),
              ElementsAre(5, 8, 0, 8));
}

TEST(BestFit, PinnedBuffersAboveEachOtherAreOneObstacle) {
  EXPECT_THAT(
      Offsets({{Pinned(0, 4, 3, 5), Pinned(0, 4, 3, 8), Pinned(0, 1, 2, 0), Block(0, 4, 2), Block(0, 4, 4)}}),
      ElementsAre(5, 8, 0, 2, 11));
}

TEST(BestFit, KeepsAlignment) {
  EXPECT_THAT(Offsets({{Block(0, 4, 13, 4), Block(0, 3, 9, 4), Block(0, 2, 1, 8)}}), ElementsAre(0, 16, 32));
}

TEST(BestFit, ManyLapsOfALongRingStayValid) {
  RandomProblems random(5);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = random.Make(
        {.buffers = 600, .ticks = 200, .max_size = 50, .cyclic = true, .aligned = round % 2 == 0});
    const std::vector<int64_t> offsets = Offsets(problem);
    Placement placement;
    for (int64_t offset : offsets) placement.offsets.emplace_back(offset);
    placement.slab = Bytes(SlabOf(Compress(problem), offsets));
    ASSERT_TRUE(CheckPlacement(problem, placement).ok()) << CheckPlacement(problem, placement);
  }
}

}  // namespace
}  // namespace reprise::planner
