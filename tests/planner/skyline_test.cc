// The look-ahead is what sets this skyline apart: the literal cases say when it defers and when it gives in.
#include "planner/skyline.h"

#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/orders.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using Outcome = FirstFit::Outcome;

struct Result {
  Outcome outcome;
  std::vector<int64_t> offsets;
};

Result Lay(const Instance& instance, std::vector<int32_t> order, int64_t goal,
           int64_t limit = Search::kNothing) {
  Search search(instance, 0, {.seconds = 3600});
  Skyline skyline(instance);
  Result result;
  result.outcome = skyline.Place(order, goal, limit, search, result.offsets);
  return result;
}

TEST(Skyline, LaysByRankWhatLiesLowest) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(0, 2, 3), Block(2, 3, 1)}});
  EXPECT_EQ(Lay(instance, {1, 0, 2}, 7).offsets, (std::vector<int64_t>{3, 0, 0}));
}

TEST(Skyline, DefersWhatWouldLeaveTooLittleRoom) {
  // 0 and 1 lie on the floor. 2 may lie on 1 at 1, but 3 and 4 also live on 0's side: on top of 0 at 5 it
  // would leave 2 wasted below 2.
  const Instance instance = Compress({{Block(0, 1, 3), Block(1, 2, 1), Block(0, 2, 4), Block(1, 2, 2)}});
  const Result result = Lay(instance, {0, 1, 2, 3}, 7);
  EXPECT_EQ(result.offsets, (std::vector<int64_t>{0, 0, 3, 1}));
}

TEST(Skyline, GivesUpWhenTheGoalWouldPassTheLimit) {
  // The bound is 5, and no placement is below 6.
  const Instance instance = Compress(
      {{Block(0, 2, 2), Block(1, 3, 3), Block(2, 4, 2), Block(3, 5, 3), Block(0, 1, 3), Block(4, 5, 2)}});
  const std::vector<int32_t> order = {0, 1, 2, 3, 4, 5};
  const Result free = Lay(instance, order, 5);
  ASSERT_EQ(free.outcome, Outcome::kComplete);
  const int64_t slab = SlabOf(instance, free.offsets);
  if (slab > 5) {
    EXPECT_EQ(Lay(instance, order, 5, slab - 1).outcome, Outcome::kTooHigh);
  }
  EXPECT_EQ(Lay(instance, order, 5, slab).outcome, Outcome::kComplete);
}

TEST(Skyline, GivesUpWhereManyWaitAndAreLookedAtAgainAndAgain) {
  const int buffers = 2000;
  const Instance instance =
      Compress(RandomProblems(7).Make({.buffers = buffers, .ticks = 300, .max_size = 1000}));
  const std::vector<int32_t> order = SortedBy(Order::kArea, instance);
  const int64_t goal = LowerBound(instance).count();
  Search search(instance, 0, {.seconds = 3600});
  std::vector<int64_t> offsets;
  Skyline patient(instance);
  ASSERT_EQ(patient.Place(order, goal, Search::kNothing, search, offsets), Outcome::kComplete);
  ASSERT_GT(patient.looks(), 50 * buffers);
  Skyline limited(instance);
  EXPECT_EQ(limited.Place(order, goal, SlabOf(instance, offsets), search, offsets), Outcome::kTooHigh);
  EXPECT_LT(limited.looks(), 20 * buffers);
}

TEST(Skyline, LeapsOverObstacles) {
  const Instance instance = Compress({{Pinned(0, 3, 2, 1), Block(0, 1, 1), Block(1, 2, 2)}});
  EXPECT_EQ(Lay(instance, {1, 2}, 5).offsets, (std::vector<int64_t>{1, 0, 3}));
}

TEST(Skyline, ABufferThatWrapsLiesAboveBothItsEnds) {
  const Instance instance = Compress({{Block(8, 12, 2), Block(3, 9, 5), Block(1, 4, 3)}, 10});
  // 0 lives with 1 at tick 8 and with 2 at tick 11.
  EXPECT_EQ(Lay(instance, {1, 2, 0}, 8).offsets, (std::vector<int64_t>{8, 0, 5}));
}

TEST(Skyline, AlignedSizesAndOffsets) {
  const Instance instance = Compress({{Block(0, 2, 3, 4), Block(0, 2, 3, 4), Block(0, 2, 8, 8)}});
  const Result result = Lay(instance, {0, 1, 2}, LowerBound(instance).count());
  EXPECT_EQ(result.offsets, (std::vector<int64_t>{0, 4, 8}));
}

TEST(Skyline, NothingToLay) {
  EXPECT_EQ(Lay(Compress({}), {}, 0).outcome, Outcome::kComplete);
  EXPECT_EQ(Lay(Compress({{Pinned(0, 1, 5, 7)}}), {}, 0).offsets, (std::vector<int64_t>{7}));
}

TEST(Skyline, RandomProblemsPassTheValidator) {
  RandomProblems random(6);
  for (int round = 0; round < 1500; ++round) {
    const int buffers = 1 + static_cast<int>(random.Below(round % 50 == 0 ? 300 : 25));
    const Problem problem = random.Make({.buffers = buffers,
                                         .ticks = 1 + random.Below(buffers),
                                         .max_size = 100,
                                         .cyclic = (round & 1) != 0,
                                         .aligned = (round & 2) != 0,
                                         .pinned = (round & 4) != 0 ? buffers / 3 : 0,
                                         .gaps = (round & 8) != 0});
    const Instance instance = Compress(problem);
    const std::vector<int32_t> order = SortedBy(Order::kArea, instance);
    const int64_t bound = LowerBound(instance).count();
    Search search(instance, bound, {.seconds = 3600});
    Skyline skyline(instance);
    std::vector<int64_t> first;
    for (int lap = 0; lap < 2; ++lap) {
      std::vector<int64_t> offsets;
      ASSERT_EQ(skyline.Place(order, bound, Search::kNothing, search, offsets), Outcome::kComplete);
      Placement placement;
      for (int64_t offset : offsets) placement.offsets.emplace_back(offset);
      placement.slab = Bytes(SlabOf(instance, offsets));
      ASSERT_TRUE(CheckPlacement(problem, placement).ok()) << round << CheckPlacement(problem, placement);
      if (lap == 0) first = offsets;
      ASSERT_EQ(first, offsets) << "the tables remember the last lap";
    }
  }
}

}  // namespace
}  // namespace reprise::planner
