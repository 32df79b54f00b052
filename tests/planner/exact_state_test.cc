#include "planner/exact_state.h"

#include <vector>

#include "gtest/gtest.h"
#include "planner/problem.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

std::vector<int64_t> Floors(const ExactState& state, int32_t buffers) {
  std::vector<int64_t> floors;
  for (int32_t i = 0; i < buffers; ++i) floors.push_back(state.floor(i));
  return floors;
}

TEST(ExactState, PlacingRaisesThoseThatConflictAndUndoTakesItBack) {
  const Problem problem{.buffers = {Block(0, 2, 3), Block(1, 3, 5), Block(2, 4, 2)}};
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(8);
  const ExactState::Mark mark = state.mark();
  state.Place(0);
  EXPECT_EQ(Floors(state, 3), (std::vector<int64_t>{0, 3, 0}));
  EXPECT_TRUE(state.placed(0));
  EXPECT_EQ(state.Rest(1), 2);
  state.Undo(mark);
  EXPECT_EQ(Floors(state, 3), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_FALSE(state.placed(0));
}

TEST(ExactState, ARejectedBufferRestsOnTheLowestEnd) {
  const Problem problem{.buffers = {Block(0, 2, 3), Block(1, 3, 5), Block(2, 4, 2)}};
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(8);
  ASSERT_TRUE(state.Reject(1));
  EXPECT_EQ(state.floor(1), 2);
  state.Place(0);
  ASSERT_TRUE(state.Propagate(true));
  state.Place(2);
  EXPECT_FALSE(state.Reject(1)) << "nobody is left to rest on";
}

TEST(ExactState, AlignmentAndObstaclesLiftTheFloor) {
  Problem problem{.buffers = {Block(0, 1, 4, 8), Block(0, 1, 3), Pinned(0, 1, 6, 3), Pinned(0, 1, 2, 17)}};
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(100);
  EXPECT_EQ(state.floor(0), 24) << "0 and 8 and 16 are in the way of an obstacle";
  EXPECT_EQ(state.floor(1), 0);
}

TEST(ExactState, ObstaclesInTheWayAreLookedAt) {
  constexpr int kObstacles = 1000;
  Problem problem{.buffers = {Block(0, 1, 8)}};
  for (int i = 0; i < kObstacles; ++i) problem.buffers.push_back(Pinned(0, 1, 4, 8 * (kObstacles - 1 - i)));
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(16 * kObstacles);
  EXPECT_EQ(state.floor(0), 8 * kObstacles - 4);
  EXPECT_GE(state.looks(), kObstacles);
}

TEST(ExactState, WhoCannotBeTheLowestOfASlotRestsOnTheOthers) {
  // In slot 0, both together need all 8 bytes. Once the second one is off the ground, it must lie on the
  // first.
  const Problem problem{.buffers = {Block(0, 1, 5), Block(0, 3, 3), Block(2, 3, 1)}};
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(8);
  ASSERT_TRUE(state.Propagate(true));
  state.Place(2);
  ASSERT_TRUE(state.Propagate(true));
  EXPECT_EQ(state.floor(1), 5);
}

TEST(ExactState, ASlotThatCannotHoldItsLoadFails) {
  const Problem problem{.buffers = {Block(0, 1, 5), Block(0, 1, 4)}};
  const Instance instance = Compress(problem);
  ExactState state(instance);
  state.Reset(8);
  EXPECT_FALSE(state.Propagate(true));
  EXPECT_EQ(state.failed_slot(), 0);
}

}  // namespace
}  // namespace reprise::planner
