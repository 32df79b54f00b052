// What the large problems look like decides what is measured on them.
#include "tests/bench/lifetimes_generator.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/problem.h"

namespace reprise::planner {
namespace {

bool Same(const Problem& a, const Problem& b) {
  return std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    [](const Buffer& x, const Buffer& y) {
                      return x.lower == y.lower && x.upper == y.upper && x.size == y.size;
                    });
}

const Problem kIteration{{{.lower = Tick(0), .upper = Tick(10), .size = Bytes(1000)},
                          {.lower = Tick(2), .upper = Tick(4), .size = Bytes(500)},
                          {.lower = Tick(3), .upper = Tick(9), .size = Bytes(300)}}};

TEST(Repeated, GoesOnUntilThereAreEnough) {
  const Problem problem = Repeated(kIteration, {.buffers = 8});
  ASSERT_EQ(problem.buffers.size(), 8u);
  EXPECT_EQ(problem.buffers[7].lower, Tick(22));
  EXPECT_EQ(problem.buffers[7].upper, Tick(24));
  EXPECT_EQ(problem.buffers[7].size, Bytes(500));
  EXPECT_EQ(MaxLive(problem), MaxLive(kIteration));
}

TEST(Repeated, JittersEachSizeWithinItsShare) {
  const Problem problem = Repeated(kIteration, {.buffers = 3000, .jitter = 0.05});
  int64_t least = 2000, most = 0;
  for (size_t i = 0; i < problem.buffers.size(); i += 3) {
    least = std::min(least, problem.buffers[i].size.count());
    most = std::max(most, problem.buffers[i].size.count());
  }
  EXPECT_GE(least, 950);
  EXPECT_LE(least, 952);
  EXPECT_GE(most, 1048);
  EXPECT_LE(most, 1050);
}

TEST(Repeated, WhatLastsIsThereOnceAndAlways) {
  const Problem problem = Repeated(kIteration, {.buffers = 101, .lasting_share = 0.9});
  ASSERT_EQ(problem.buffers.size(), 101u);
  EXPECT_EQ(problem.buffers[0].lower, Tick(0));
  EXPECT_EQ(problem.buffers[0].upper, Tick(500));
  EXPECT_EQ(std::count_if(problem.buffers.begin(), problem.buffers.end(),
                          [](const Buffer& buffer) { return buffer.size == Bytes(1000); }),
            1);
}

TEST(Repeated, WithAShortStrideTheyOverlap) {
  const Problem problem = Repeated(kIteration, {.buffers = 6, .stride = 0.5});
  EXPECT_EQ(MaxLive(problem), Bytes(3100)) << "at tick 8, all but the short one of the first";
  EXPECT_TRUE(std::is_sorted(problem.buffers.begin(), problem.buffers.end(),
                             [](const Buffer& a, const Buffer& b) { return a.lower < b.lower; }));
}

TEST(Crowded, HasTwoFifthsInUseAtATime) {
  constexpr int32_t kBuffers = 10'000;
  const Instance instance = Compress(Crowded(kBuffers, 1));
  double in_use = 0;
  for (int32_t i = 0; i < kBuffers; ++i) in_use += instance.length(i);
  EXPECT_NEAR(in_use / instance.slots / kBuffers, 0.4, 0.02);
  EXPECT_TRUE(Same(Crowded(100, 1), Crowded(100, 1)));
  EXPECT_FALSE(Same(Crowded(100, 1), Crowded(100, 2)));
}

TEST(Repeated, EqualSeedsGiveEqualProblems) {
  const Problem iteration = SyntheticIteration(12, 3);
  EXPECT_TRUE(Validate(iteration).ok());
  EXPECT_TRUE(Same(iteration, SyntheticIteration(12, 3)));
  const Repetition repetition{.buffers = 1000, .jitter = 0.05, .seed = 4};
  EXPECT_TRUE(Same(Repeated(iteration, repetition), Repeated(iteration, repetition)));
  EXPECT_FALSE(Same(Repeated(iteration, repetition),
                    Repeated(iteration, {.buffers = 1000, .jitter = 0.05, .seed = 5})));
}

}  // namespace
}  // namespace reprise::planner
