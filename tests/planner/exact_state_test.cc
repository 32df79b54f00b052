#include "planner/exact_state.h"

#include <chrono>
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

// By twos they share no slot, so that every range of both is looked at: side by side, or each with each.
TEST(ExactState, ManyGapsTakeLinearTime) {
  Problem problem;
  for (int i = 0; i < 100; ++i) {
    Buffer buffer = Block(i % 2, i % 2 + 4001, 1);
    for (int64_t k = 0; k < 2000; ++k) {
      buffer.gaps.push_back({Tick(i % 2 + 1 + 2 * k), Tick(i % 2 + 2 + 2 * k)});
    }
    problem.buffers.push_back(buffer);
  }
  const Instance instance = Compress(problem);
  const auto begin = std::chrono::steady_clock::now();
  const ExactState state(instance);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(state.conflicts_of(0).size(), 49);
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
