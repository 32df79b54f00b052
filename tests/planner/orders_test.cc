// The orders are what the members of the portfolio differ in; each must rank by what its name says.
#include "planner/orders.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

// Slots 0 to 4, loads 100, 110, 10, 16, 6.
const Problem kFourSlots{
    {Block(0, 1, 40), Block(0, 2, 60), Block(1, 2, 50), Block(2, 3, 10), Block(3, 5, 6), Block(3, 4, 10)}};

TEST(Orders, RankByWhatTheyAreNamedFor) {
  const Instance instance = Compress(kFourSlots);
  ASSERT_EQ(instance.slots, 4) << "the end of buffer 4 does not begin a slot";
  EXPECT_THAT(SortedBy(Order::kSize, instance), ElementsAre(1, 2, 0, 3, 5, 4));
  EXPECT_THAT(SortedBy(Order::kArea, instance), ElementsAre(1, 2, 0, 3, 5, 4));
  EXPECT_THAT(SortedBy(Order::kLifetime, instance), ElementsAre(1, 2, 0, 3, 5, 4));
  EXPECT_THAT(SortedBy(Order::kCrowdSize, instance), ElementsAre(1, 2, 0, 5, 4, 3));
  EXPECT_THAT(SortedBy(Order::kCrowdLifetime, instance), ElementsAre(1, 2, 0, 5, 4, 3));
}

TEST(Orders, TellAreaLifetimeAndSizeApart) {
  const Instance instance =
      Compress({{Block(0, 3, 4), Block(0, 1, 10), Block(1, 2, 9), Block(2, 3, 9), Block(1, 3, 5)}});
  EXPECT_THAT(SortedBy(Order::kSize, instance), ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(SortedBy(Order::kArea, instance), ElementsAre(0, 1, 4, 2, 3));
  EXPECT_THAT(SortedBy(Order::kLifetime, instance), ElementsAre(0, 4, 1, 2, 3));
}

TEST(Orders, WhatIsAlignedCoarselyIsAsLarge) {
  const Instance instance =
      Compress({{Block(0, 1, 60), Block(0, 1, 3, 64), Block(0, 1, 50), Block(0, 1, 9, 8)}});
  EXPECT_THAT(SortedBy(Order::kSize, instance), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(SortedBy(Order::kCrowdSize, instance), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(SortedBy(Classes{}, instance), ElementsAre(1, 0, 2, 3));
}

TEST(Orders, CrowdIsTheLargestLoadOfTheLifetime) {
  const Instance instance = Compress({{Block(0, 1, 30), Block(1, 2, 20), Block(0, 2, 5), Block(1, 2, 21)}});
  EXPECT_THAT(SortedBy(Order::kCrowdSize, instance), ElementsAre(3, 1, 2, 0));
  EXPECT_THAT(SortedBy(Order::kCrowdLifetime, instance), ElementsAre(2, 3, 1, 0));
}

TEST(Orders, ACrowdIsInBytes) {
  const Instance instance = Compress({{Block(0, 1, 30), Block(1, 2, 20), Block(0, 2, 5), Block(1, 2, 21)}});
  EXPECT_THAT(CrowdOf(instance), ElementsAre(35, 46, 46, 46));
}

TEST(Orders, CrowdSeesBothSidesOfAWrap) {
  const Instance instance = Compress({{Block(9, 12, 1), Block(5, 9, 8), Block(1, 3, 90)}, 10});
  EXPECT_THAT(SortedBy(Order::kCrowdSize, instance), ElementsAre(2, 0, 1));
}

TEST(Orders, SizesOfAQuarterOctaveGoByStart) {
  const Instance instance =
      Compress({{Block(3, 4, 1030), Block(0, 1, 1024), Block(1, 2, 1300), Block(2, 3, 1025)}});
  EXPECT_THAT(SortedBy(Classes{.per_octave = 4}, instance), ElementsAre(2, 1, 3, 0));
}

TEST(Orders, ThePhaseMovesTheBordersOfTheClasses) {
  const Instance instance = Compress({{Block(0, 1, 1000), Block(1, 2, 1030), Block(2, 3, 500)}});
  EXPECT_THAT(SortedBy(Classes{.per_octave = 1}, instance), ElementsAre(1, 0, 2));
  EXPECT_THAT(SortedBy(Classes{.per_octave = 1, .phase = 0.5}, instance), ElementsAre(0, 1, 2));
}

TEST(Orders, ClassesCanCountTheLifetime) {
  const Instance instance = Compress({{Block(0, 1, 100), Block(1, 4, 80), Block(2, 3, 100), Block(3, 4, 1)}});
  EXPECT_THAT(SortedBy(Classes{.per_octave = 1}, instance), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SortedBy(Classes{.per_octave = 1, .exponent = 1}, instance), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(SortedBy(Classes{.per_octave = 1, .by_lifetime = true}, instance), ElementsAre(1, 0, 2, 3));
}

TEST(Orders, LeaveOutPinnedBuffers) {
  EXPECT_THAT(SortedBy(Order::kSize, Compress({{Block(0, 1, 1), Pinned(0, 1, 9, 9), Block(0, 1, 2)}})),
              ElementsAre(2, 0));
}

}  // namespace
}  // namespace reprise::planner
