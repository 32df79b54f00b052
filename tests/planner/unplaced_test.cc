// The search for the best buffer of a window, and for all, against looking at all of them.
#include "planner/unplaced.h"

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

TEST(Unplaced, AgainstLookingAtAll) {
  RandomProblems random(4);
  for (int round = 0; round < 100; ++round) {
    const Instance instance = Compress(random.Make(
        {.buffers = 1 + static_cast<int>(random.Below(30)), .ticks = 25, .cyclic = round % 2 == 0}));
    std::vector<int32_t> order(instance.buffers());
    std::iota(order.begin(), order.end(), 0);
    Unplaced unplaced(instance, order, instance.size);
    for (int lap = 0; lap < 2; ++lap) {
      std::reverse(order.begin(), order.end());
      unplaced.Reset(order);
      std::vector<int32_t> left = order;  // by rank; -1: taken
      while (!unplaced.empty()) {
        const int32_t low = static_cast<int32_t>(random.Below(instance.slots));
        const int32_t high = low + static_cast<int32_t>(random.Below(instance.slots + 1));
        const int64_t room = random.Below(12);
        int32_t expected = Unplaced::kNoRank;
        int32_t any = 0;
        std::vector<int32_t> fitting;
        for (int32_t rank = instance.buffers() - 1; rank >= 0; --rank) {
          const int32_t i = left[rank];
          if (i < 0) continue;
          any = rank;
          if (instance.begin[i] < low || instance.end[i] > high || instance.size[i] > room) continue;
          expected = rank;
          fitting.push_back(i);
        }
        ASSERT_EQ(unplaced.Find(low, high, room), expected);
        std::vector<int32_t> found;
        ASSERT_TRUE(unplaced.FindAll(low, high, room, fitting.size(), found));
        ASSERT_THAT(found, testing::UnorderedElementsAreArray(fitting));
        if (fitting.size() > 1) {
          found.clear();
          ASSERT_FALSE(unplaced.FindAll(low, high, room, fitting.size() - 1, found));
        }
        const int32_t taken = expected == Unplaced::kNoRank ? any : expected;
        unplaced.Take(order[taken]);
        left[taken] = -1;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
