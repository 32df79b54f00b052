// A bound that is too high would call a placement optimal that is not, and a capacity too small that is
// enough.
#include "planner/ring_bound.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

int64_t RefutedByRounds(const Problem& problem) {
  const Instance instance = Compress(problem);
  Search search(instance, 0, {.seconds = 3600});
  const Turn turn = BeginRingBound(search, "ring-bound");
  while (turn()) {
  }
  return search.refuted();
}

// Each for two fifths of a round, a fifth after the one before: it meets that one and the next.
Problem FiveAroundTheRing() {
  Problem problem;
  for (int64_t i = 0; i < 5; ++i) problem.buffers.push_back(Block(4 * i, 4 * i + 7, 10));
  problem.period = 20;
  return problem;
}

TEST(RingBound, NoMoreThanTwoOfWhatLastsForMoreThanAThirdFollowOneAnother) {
  EXPECT_EQ(LowerBound(FiveAroundTheRing()), Bytes(20));
  EXPECT_EQ(RefutedByRounds(FiveAroundTheRing()), 24);
}

TEST(RingBound, IsTheAnswersBound) {
  const auto solution = Solve(FiveAroundTheRing(), {.seconds = 3600});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->placement.slab, Bytes(30));
  EXPECT_GE(solution->lower_bound, Bytes(25));
}

// The time at which nothing that matters happens counts for nothing.
TEST(RingBound, IsTheSameWhereShortBlocksMakeAPartOfTheRoundLonger) {
  Problem problem = FiveAroundTheRing();
  problem.period = 70;
  problem.buffers[4].upper = Tick(73);
  for (int64_t tick = 24; tick < 66; tick += 2) problem.buffers.push_back(Block(tick, tick + 1, 1));
  EXPECT_EQ(RefutedByRounds(problem), 24);
}

TEST(RingBound, NothingIsToldOfALine) {
  Problem problem = FiveAroundTheRing();
  problem.period = std::nullopt;
  EXPECT_EQ(RefutedByRounds(problem), -1);
}

// Two of the others follow one another.
TEST(RingBound, PinnedBuffersAndGapsAreLeftOut) {
  Problem problem = FiveAroundTheRing();
  problem.buffers[0].pinned = Offset(0);
  EXPECT_LE(RefutedByRounds(problem), 19);
  problem = FiveAroundTheRing();
  problem.buffers[0] = WithGaps(problem.buffers[0], {{1, 2}});
  problem.buffers.push_back(Block(1, 2, 1));  // which makes use of the gap
  EXPECT_LE(RefutedByRounds(problem), 19);
}

TEST(RingBound, WhatIsTooLargeToBeSummedUpIsLeftAlone) {
  Problem problem = FiveAroundTheRing();
  for (Buffer& buffer : problem.buffers) buffer.size = Bytes(int64_t{1} << 57);
  EXPECT_EQ(RefutedByRounds(problem), -1);
}

TEST(RingBound, IsNotAboveTheLeastOfSmallRings) {
  RandomProblems problems(6);
  int above_load = 0;
  for (int i = 0; i < 3000; ++i) {
    const int buffers = 3 + static_cast<int>(problems.Below(4));
    const Problem problem =
        problems.Make({.buffers = buffers, .ticks = 4 + problems.Below(12), .cyclic = true});
    if (!Compress(problem).cyclic) continue;
    const int64_t bound = RefutedByRounds(problem) + 1;
    ASSERT_LE(bound, BruteForce(problem).Least().count()) << "problem " << i;
    above_load += bound > MaxLive(problem).count();
  }
  EXPECT_GT(above_load, 20);
}

}  // namespace
}  // namespace reprise::planner
