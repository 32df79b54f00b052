// The best chain of a stretch of time: cases by hand, and against trying all sets.
#include "planner/chain.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Chain, TwoThatFollowEachOtherGoBeforeOneBetween) {
  const Instance instance = Compress({{Block(3, 7, 1), Block(5, 9, 1), Block(1, 5, 1)}});
  Chain chain(instance);
  const std::vector<double> values = {5, 3, 3};
  EXPECT_THAT(chain.Best(0, instance.slots, std::vector<int32_t>{0, 1, 2}, values), ElementsAre(2, 1));
  EXPECT_THAT(chain.Best(0, instance.slots, std::vector<int32_t>{0, 1}, values), ElementsAre(0));
  EXPECT_THAT(chain.Best(0, instance.slots, {}, values), IsEmpty());
}

TEST(Chain, GoesOnPastTheEndOfACycle) {
  // From slot 6 on, 2 ends where the cycle does and 1 begins there; 0 crosses the end.
  Problem problem{{Block(7, 13, 1), Block(0, 4, 1), Block(6, 10, 1)}, 10};
  for (int64_t tick = 0; tick < 10; ++tick) problem.buffers.push_back(Block(tick, tick + 1, 1));
  const Instance instance = Compress(problem, /*turn_cycles=*/false);
  ASSERT_EQ(instance.slots, 10);
  Chain chain(instance);
  const std::vector<int32_t> all = {0, 1, 2};
  EXPECT_THAT(chain.Best(6, 14, all, std::vector<double>{5, 3, 3}), ElementsAre(2, 1));
  EXPECT_THAT(chain.Best(6, 14, all, std::vector<double>{7, 3, 3}), ElementsAre(0));
}

// The largest sum of values of candidates that share no slot.
double MostOfAll(const Instance& instance, const std::vector<int32_t>& candidates,
                 const std::vector<double>& values) {
  double most = 0;
  for (uint32_t set = 0; set < uint32_t{1} << candidates.size(); ++set) {
    std::vector<int32_t> chosen;
    double sum = 0;
    bool apart = true;
    for (size_t k = 0; k < candidates.size(); ++k) {
      if ((set >> k & 1) == 0) continue;
      for (const int32_t other : chosen)
        apart = apart && !ShareSlot(instance.ranges(candidates[k]), instance.ranges(other));
      chosen.push_back(candidates[k]);
      sum += values[candidates[k]];
    }
    if (apart) most = std::max(most, sum);
  }
  return most;
}

TEST(Chain, AgainstTryingAllSets) {
  RandomProblems random(7);
  for (int round = 0; round < 300; ++round) {
    const Instance instance = Compress(random.Make({.buffers = 12, .ticks = 30, .cyclic = round % 2 == 0}));
    Chain chain(instance);
    for (int again = 0; again < 4; ++again) {
      std::vector<double> values(instance.buffers());
      for (double& value : values) value = static_cast<double>(1 + random.Below(20));
      const int32_t low = static_cast<int32_t>(random.Below(instance.slots));
      const int32_t longest = instance.cyclic ? instance.slots : instance.slots - low;
      const int32_t high = low + static_cast<int32_t>(random.Below(longest + 1));
      std::vector<int32_t> candidates;
      for (int32_t i = 0; i < instance.buffers(); ++i) {
        const int32_t lap = instance.begin[i] < low ? instance.slots : 0;
        if ((lap == 0 || instance.cyclic) && instance.end[i] + lap <= high) candidates.push_back(i);
      }
      const std::vector<int32_t> best = chain.Best(low, high, candidates, values);
      double sum = 0;
      int32_t until = low;
      for (const int32_t i : best) {
        const int32_t lap = instance.begin[i] < low ? instance.slots : 0;
        ASSERT_GE(instance.begin[i] + lap, until);
        until = instance.end[i] + lap;
        sum += values[i];
      }
      ASSERT_LE(until, high);
      ASSERT_EQ(sum, MostOfAll(instance, candidates, values)) << round;
    }
  }
}

}  // namespace
}  // namespace reprise::planner
