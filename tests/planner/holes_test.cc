// Holes by the ends of their neighbours, against a list of all of them.
#include "planner/holes.h"

#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

TEST(Holes, WhatLeavesTogetherLiesTogether) {
  Holes holes(100);
  EXPECT_EQ(holes.Beside(5, 101, 1), Holes::kNowhere);
  EXPECT_EQ(holes.Beside(5, 100, 1), 0);
  holes.Put(0, 10, 50);
  holes.Put(60, 70, 20);
  EXPECT_EQ(holes.Beside(48, 10, 1), 10);
  EXPECT_EQ(holes.Beside(52, 10, 1), 10);
  EXPECT_EQ(holes.Beside(21, 10, 1), 70) << "the smaller hole";
  EXPECT_EQ(holes.Beside(21, 31, 1), 29) << "below it, where there is room";
  EXPECT_EQ(holes.Beside(Holes::kNever, 30, 1), 70) << "the roof is nearest, and the hole is filled";
  EXPECT_EQ(holes.Beside(Holes::kNever, 20, 1), 80) << "right below the roof";
}

TEST(Holes, WhoLeavesMakesOneHoleOfThree) {
  Holes holes(100);
  for (const int64_t bottom : {0, 20, 40, 60, 80}) holes.Put(bottom, bottom + 20, 1);
  EXPECT_EQ(holes.Beside(1, 1, 1), Holes::kNowhere);
  holes.Drop(20);
  holes.Drop(60);
  EXPECT_EQ(holes.Beside(1, 21, 1), Holes::kNowhere);
  holes.Drop(40);
  EXPECT_EQ(holes.Beside(1, 60, 1), 20);
  EXPECT_EQ(holes.Beside(1, 61, 1), Holes::kNowhere);
}

TEST(Holes, AnAlignmentMayTakeMoreThanOneHoleHas) {
  Holes holes(200);
  holes.Put(0, 1, 10);
  holes.Put(31, 40, 10);  // [1, 31) is the smaller hole, and has no multiple of 32
  EXPECT_EQ(holes.Beside(10, 20, 1), 1);
  EXPECT_EQ(holes.Beside(10, 20, 32), 64);
  EXPECT_EQ(holes.Beside(Holes::kNever, 20, 32), 160) << "from the roof down";
  EXPECT_EQ(holes.Beside(10, 200, 32), Holes::kNowhere);
}

TEST(Holes, NothingFitsBelowNoHeight) {
  Holes holes(0);
  EXPECT_EQ(holes.Beside(1, 1, 1), Holes::kNowhere);
}

// Where Beside should put it, by looking at every hole from both sides.
int64_t Best(const std::map<int64_t, std::pair<int64_t, int32_t>>& tenants, int64_t height, int32_t end,
             int64_t bytes, int64_t alignment) {
  using Key =
      std::tuple<int64_t, bool, int64_t, int64_t, bool>;  // how far, earlier, hole, bottom, at its top
  std::optional<std::pair<Key, int64_t>> best;
  int64_t bottom = 0;
  int32_t below = Holes::kNever;
  const auto look = [&](int64_t top, int32_t above) {
    const int64_t low = (bottom + alignment - 1) / alignment * alignment;
    const int64_t high = top - bytes < 0 ? -1 : (top - bytes) / alignment * alignment;
    for (const bool at_top : {false, true}) {
      const int32_t leaves = at_top ? above : below;
      const int64_t at = at_top ? high : low;
      if (at < bottom || at + bytes > top) continue;
      const Key key(std::abs(int64_t{leaves} - end), leaves < end, top - bottom, bottom, at_top);
      if (!best || key < best->first) best = {key, at};
    }
  };
  for (const auto& [at, tenant] : tenants) {
    look(at, tenant.second);
    std::tie(bottom, below) = tenant;
  }
  look(height, Holes::kNever);
  return best ? best->second : Holes::kNowhere;
}

TEST(Holes, AgreeWithAListOfAll) {
  RandomProblems random(76);
  for (int round = 0; round < 300; ++round) {
    const int64_t height = 1 + random.Below(80);
    Holes holes(height);
    std::map<int64_t, std::pair<int64_t, int32_t>> tenants;
    for (int step = 0; step < 60; ++step) {
      const auto end = static_cast<int32_t>(random.Below(12));
      const int64_t bytes = 1 + random.Below(12), alignment = 1 + random.Below(5);
      const int64_t at = holes.Beside(end, bytes, alignment);
      ASSERT_EQ(at, Best(tenants, height, end, bytes, alignment)) << round << ", " << step;
      if (at != Holes::kNowhere && random.Below(4) != 0) {
        holes.Put(at, at + bytes, end);
        tenants[at] = {at + bytes, end};
      } else if (!tenants.empty()) {
        const auto gone = std::next(tenants.begin(), random.Below(static_cast<int64_t>(tenants.size())));
        holes.Drop(gone->first);
        tenants.erase(gone);
      }
    }
    EXPECT_GT(holes.looks(), 60);
  }
}

}  // namespace
}  // namespace reprise::planner
