// The trees against plain arrays, since a wrong node shows only in some shapes.
#include "planner/slot_trees.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Range RandomRange(RandomProblems& random, int32_t slots) {
  const int32_t begin = static_cast<int32_t>(random.Below(slots));
  return {begin, begin + 1 + static_cast<int32_t>(random.Below(slots - begin))};
}

TEST(HeightTree, ARaiseSplitsALine) {
  HeightTree tree(8, /*ring=*/false);
  tree.Raise(Range{2, 5}, 10);
  const HeightTree::Line line = tree.Lowest();
  EXPECT_EQ(line.begin, 0);
  EXPECT_EQ(line.length, 2);
  EXPECT_EQ(tree.LowerNeighbour(line), 10);
  tree.Raise(line, 10);
  EXPECT_EQ(tree.Lowest().begin, 5);
  EXPECT_EQ(tree.Highest({0, 8}), 10);
}

TEST(HeightTree, ALineOfARingGoesPastItsEnd) {
  HeightTree tree(6, /*ring=*/true);
  tree.Raise(Range{2, 4}, 7);
  HeightTree::Line line = tree.Lowest();
  EXPECT_EQ(line.begin, 4);
  EXPECT_EQ(line.length, 4);
  tree.Raise(line, tree.LowerNeighbour(line));
  line = tree.Lowest();
  EXPECT_EQ(line.length, 6);
  EXPECT_EQ(tree.LowerNeighbour(line), HeightTree::kNoNeighbour);
}

// Is `line` a maximal run of the least height?
void ExpectLowestLine(const std::vector<int64_t>& heights, bool ring, const HeightTree::Line& line) {
  const int32_t slots = static_cast<int32_t>(heights.size());
  const int64_t lowest = *std::min_element(heights.begin(), heights.end());
  ASSERT_EQ(line.height, lowest);
  for (int32_t i = 0; i < line.length; ++i) ASSERT_EQ(heights[(line.begin + i) % slots], lowest);
  if (line.length == slots) return;
  if (ring || line.begin > 0) {
    ASSERT_GT(heights[(line.begin + slots - 1) % slots], lowest);
  }
  const int32_t end = line.begin + line.length;
  if (ring || end < slots) {
    ASSERT_GT(heights[end % slots], lowest);
  }
}

TEST(HeightTree, AgainstAnArray) {
  RandomProblems random(1);
  for (int round = 0; round < 300; ++round) {
    const int32_t slots = 1 + static_cast<int32_t>(random.Below(20));
    const bool ring = round % 2 == 0;
    HeightTree tree(slots, ring);
    std::vector<int64_t> heights(slots, 0);
    for (int step = 0; step < 40; ++step) {
      const Range range = RandomRange(random, slots);
      const int64_t height = random.Below(12);
      tree.Raise(range, height);
      for (int32_t s = range.begin; s < range.end; ++s) heights[s] = std::max(heights[s], height);
      const Range asked = RandomRange(random, slots);
      ASSERT_EQ(tree.Highest(asked),
                *std::max_element(heights.begin() + asked.begin, heights.begin() + asked.end));
      ExpectLowestLine(heights, ring, tree.Lowest());
    }
  }
}

TEST(LoadTree, FindsTheSlotOfTheLargestLoad) {
  LoadTree tree(5);
  tree.Reset({1, 4, 2, 4, 3});
  EXPECT_EQ(tree.Largest({0, 5}).slot, 1);
  tree.Add({0, 3}, -2);
  EXPECT_EQ(tree.Largest({0, 5}).slot, 3);
  EXPECT_EQ(tree.Largest({0, 3}).load, 2);
}

TEST(LoadTree, WakesTheLeastWaiterFirst) {
  LoadTree tree(3);
  tree.Reset({5, 6, 7});
  EXPECT_EQ(tree.LeastWaiting(), LoadTree::kNobody);
  tree.Wait(0, 10, 100);
  tree.Wait(2, 5, 101);
  EXPECT_EQ(tree.LeastWaiting(), 12);
  tree.Add({0, 1}, -4);
  EXPECT_EQ(tree.LeastWaiting(), 11);
  EXPECT_EQ(tree.Wake(), 100);
  EXPECT_EQ(tree.Wake(), 101);
  EXPECT_EQ(tree.LeastWaiting(), LoadTree::kNobody);
}

TEST(LoadTree, AgainstAnArray) {
  struct Waiter {
    int32_t slot;
    int64_t height;
    int32_t who;
  };
  RandomProblems random(2);
  for (int round = 0; round < 300; ++round) {
    const int32_t slots = 1 + static_cast<int32_t>(random.Below(20));
    std::vector<int64_t> loads;
    for (int32_t s = 0; s < slots; ++s) loads.push_back(random.Below(50));
    LoadTree tree(slots);
    tree.Reset(loads);
    std::vector<Waiter> waiters;
    for (int step = 0; step < 40; ++step) {
      const Range range = RandomRange(random, slots);
      const int64_t bytes = random.Below(9) - 6;
      tree.Add(range, bytes);
      for (int32_t s = range.begin; s < range.end; ++s) loads[s] += bytes;
      const LoadTree::Peak peak = tree.Largest(range);
      ASSERT_EQ(peak.load, *std::max_element(loads.begin() + range.begin, loads.begin() + range.end));
      ASSERT_EQ(loads[peak.slot], peak.load);
      waiters.push_back({peak.slot, random.Below(30), step});
      tree.Wait(waiters.back().slot, waiters.back().height, step);
      const auto least = std::min_element(waiters.begin(), waiters.end(), [&](const auto& a, const auto& b) {
        return a.height + loads[a.slot] < b.height + loads[b.slot];
      });
      ASSERT_EQ(tree.LeastWaiting(), least->height + loads[least->slot]);
      if (step % 3 != 0) continue;
      const int32_t who = tree.Wake();
      const auto woken = std::find_if(waiters.begin(), waiters.end(), [&](auto& w) { return w.who == who; });
      ASSERT_EQ(woken->height + loads[woken->slot], least->height + loads[least->slot]);
      waiters.erase(woken);
    }
  }
}

}  // namespace
}  // namespace reprise::planner
