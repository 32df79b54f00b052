// A plan in use must not be torn up because one block has changed: what was placed stays, as far as the slab
// allows.
#include "planner/keep.h"

#include <cstdio>
#include <new>

#include "gtest/gtest.h"
#include "planner/portfolio.h"
#include "planner/problem.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Buffer Was(Buffer buffer, int64_t offset) {
  buffer.previous = Offset(offset);
  return buffer;
}

TEST(KeepPrevious, LeavesEverythingWhereItWas) {
  // Any solver would begin with the large one at the bottom.
  const Problem problem{{Was(Block(0, 4, 100), 10), Was(Block(0, 4, 10), 0)}};
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->placement.offsets[0], Offset(10));
  EXPECT_EQ(solution->placement.offsets[1], Offset(0));
  EXPECT_TRUE(solution->proven_optimal);
}

TEST(KeepPrevious, WhatIsNewFindsAPlaceBesideIt) {
  const Problem problem{{Was(Block(0, 4, 100), 10), Was(Block(0, 2, 10), 0), Block(2, 4, 10)}};
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(ShareKept(problem, solution->placement), 1);
  EXPECT_EQ(solution->placement.offsets[2], Offset(0));
}

TEST(KeepPrevious, GivesUpWhatWouldCostTooMuch) {
  // Both where they were leaves a hole of 90 bytes below.
  const Problem problem{{Was(Block(0, 4, 100), 100), Was(Block(0, 4, 10), 0)}};
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->placement.slab, Bytes(110));
}

TEST(KeepPrevious, IgnoresWhatCannotBe) {
  Buffer unaligned = Was(Block(0, 4, 8, 8), 3);
  const Problem problem{{Was(Block(0, 4, 8), -5), unaligned, Was(Block(0, 4, 8), 0), Was(Block(0, 4, 8), 4)}};
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  EXPECT_EQ(solution->placement.slab, Bytes(32));
}

TEST(KeepPrevious, StaysWithinTheCapacity) {
  Problem problem{{Was(Block(0, 4, 1000), 5), Was(Block(0, 4, 10), 1005)}};
  problem.capacity = Bytes(1010);
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_LE(solution->placement.slab, Bytes(1010));
}

TEST(KeepPrevious, LeavesTheSolutionAsItIsWhenToldToStopOrWithoutMemory) {
  Problem problem;
  Solution solution;
  for (int i = 0; i < 1000; ++i) {
    problem.buffers.push_back(Was(Block(0, 1, 10), 10 * (999 - i)));
    solution.placement.offsets.emplace_back(10 * i);
  }
  solution.placement.slab = Bytes(10'000);
  const std::vector<Offset> before = solution.placement.offsets;
  int asked = 0;
  const auto third_time = [&] { return ++asked >= 3; };
  KeepPrevious(problem, third_time, solution);
  EXPECT_EQ(solution.placement.offsets, before);
  EXPECT_EQ(asked, 3);
  asked = 0;
  const auto no_memory_the_third_time = [&] { return ++asked < 3 ? false : throw std::bad_alloc(); };
  EXPECT_NO_THROW(KeepPrevious(problem, no_memory_the_third_time, solution));
  EXPECT_EQ(solution.placement.offsets, before);
  KeepPrevious(
      problem, [] { return false; }, solution);
  EXPECT_EQ(ShareKept(problem, solution.placement), 1);
}

TEST(KeepPrevious, IsDoneForAFewBuffersHoweverShortTheTime) {
  const Problem problem{{Was(Block(0, 4, 100), 10), Was(Block(0, 4, 10), 0)}};
  const auto solution = Solve(problem, {.seconds = 0});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->solver, "keep-previous");
}

TEST(AdoptPrevious, FindsTheSameBuffersAgain) {
  const std::vector<Bytes> sizes = {Bytes(1), Bytes(2), Bytes(3), Bytes(4), Bytes(5)};
  const std::vector<Offset> offsets = {Offset(10), Offset(20), Offset(30), Offset(40), Offset(50)};
  // One is new, one is gone, one has another size.
  Problem problem{{Block(0, 1, 1), Block(0, 1, 9), Block(0, 1, 2), Block(0, 1, 4), Block(0, 1, 6)}};
  AdoptPrevious(sizes, offsets, problem);
  EXPECT_EQ(problem.buffers[0].previous, Offset(10));
  EXPECT_EQ(problem.buffers[1].previous, std::nullopt);
  EXPECT_EQ(problem.buffers[2].previous, Offset(20));
  EXPECT_EQ(problem.buffers[3].previous, Offset(40));
  EXPECT_EQ(problem.buffers[4].previous, std::nullopt);
}

TEST(KeepPrevious, ASlightChangeKeepsMost) {
  double kept = 0;
  RandomProblems random(43);
  for (int round = 0; round < 40; ++round) {
    Problem problem = random.Make({.buffers = 300, .ticks = 400, .max_size = 1000, .cyclic = round % 2 == 1});
    const auto before = Solve(problem, {.steps = 50000});
    ASSERT_TRUE(before.ok());
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      problem.buffers[i].previous = before->placement.offsets[i];
    Buffer& changed = problem.buffers[static_cast<size_t>(random.Below(300))];
    changed.size += Bytes(1 + random.Below(50));
    const auto after = Solve(problem, {.steps = 50000});
    ASSERT_TRUE(after.ok());
    ASSERT_TRUE(CheckPlacement(problem, after->placement).ok()) << CheckPlacement(problem, after->placement);
    kept += *ShareKept(problem, after->placement) / 40;
  }
  std::printf("kept %.3f\n", kept);
  EXPECT_GT(kept, 0.8);
}

// Lifetimes of all lengths leave no slack: everything meets something that has changed.
TEST(KeepPrevious, ManySlightChangesKeepMost) {
  RandomProblems random(7);
  for (const bool cyclic : {false, true}) {
    constexpr int64_t kTicks = 4096;
    Problem problem;
    if (cyclic) problem.period = kTicks;
    for (int i = 0; i < 2000; ++i) {
      const int64_t length = 1 + random.Below(int64_t{4} << random.Below(9));
      const int64_t begin = random.Below(cyclic ? kTicks : kTicks - length);
      problem.buffers.push_back(
          Block(begin, begin + length, 512 * (1 + random.Below(int64_t{1} << random.Below(12)))));
    }
    const auto before = Solve(problem, {.steps = 500'000});
    ASSERT_TRUE(before.ok());
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      problem.buffers[i].previous = before->placement.offsets[i];
      if (i % 100 == 0) problem.buffers[i].size += Bytes(problem.buffers[i].size.count() / 10 + 1);
    }
    const auto after = Solve(problem, {.steps = 500'000});
    ASSERT_TRUE(after.ok());
    ASSERT_TRUE(CheckPlacement(problem, after->placement).ok()) << CheckPlacement(problem, after->placement);
    EXPECT_EQ(after->solver, "keep-previous");
    EXPECT_GE(*ShareKept(problem, after->placement), 0.95) << (cyclic ? "a cycle" : "a line");
  }
}

}  // namespace
}  // namespace reprise::planner
