// What is placed stretch by stretch must fit as a whole, whatever crosses the cuts; and the highest stretch
// is the one to work on.
#include "planner/divide.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Turn BySize(Search& search, std::string_view name) {
  return [&search, name] {
    const std::vector<int32_t> order = SortedBy(Order::kSize, search.instance());
    std::vector<int64_t> offsets;
    if (FirstFit(search.instance()).Place(order, Search::kNothing, search, offsets) ==
        FirstFit::Outcome::kComplete) {
      search.Offer(offsets, name, order);
    }
    return false;
  };
}

constexpr Solver kMembers[] = {{"by-size", BySize}};

Placement BestOf(const Search& search) {
  Placement placement;
  for (int64_t offset : search.best()) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(search.best_slab());
  return placement;
}

TEST(Divide, EveryMixOfFeaturesPassesTheValidator) {
  RandomProblems random(43);
  for (int round = 0; round < 400; ++round) {
    const int buffers = 5 + static_cast<int>(random.Below(200));
    const Problem problem = random.Make({.buffers = buffers,
                                         .ticks = 2 + random.Below(2 * buffers),
                                         .max_size = 1000,
                                         .cyclic = (round & 1) != 0,
                                         .aligned = (round & 2) != 0,
                                         .pinned = (round & 4) != 0 ? buffers / 3 : 0,
                                         .gaps = (round & 8) != 0,
                                         .outside = (round & 16) != 0});
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), {.steps = round % 3 == 0 ? 0 : 20000});
    BeginDivide(search, "divide", kMembers, {4, 20})();
    ASSERT_NE(search.best_slab(), Search::kNothing);
    ASSERT_TRUE(CheckPlacement(problem, BestOf(search)).ok()) << round;
  }
}

// Divided is also what has a placement already, and the time of one turn may be over anywhere.
TEST(Divide, OffersNoPartOfAPlacement) {
  Problem problem;  // all pause in the middle, where it is cut
  for (int i = 0; i < 150; ++i) {
    const int64_t first = i * 7 % 290, second = 310 + i * 11 % 290;
    Buffer& buffer = problem.buffers.emplace_back();
    buffer.lower = Tick(first);
    buffer.upper = Tick(second + 1 + i * 17 % (600 - second));
    buffer.gaps = {{Tick(first + 1 + i * 13 % (300 - first)), Tick(second)}};
    buffer.size = Bytes(100 + i);
  }
  const Instance instance = Compress(problem);
  int whole = 0;
  for (int64_t granted = 0; granted < 12000; granted += 8) {
    Search search(instance, LowerBound(instance).count(), {});
    std::vector<int64_t> above(instance.pinned.size());  // one on the other
    int64_t top = 0;
    for (size_t i = 0; i < above.size(); ++i) above[i] = std::exchange(top, top + instance.size[i]);
    search.Offer(above, "one-by-one");
    search.Grant(granted);
    BeginDivide(search, "divide", kMembers, {1, 20})();
    ASSERT_TRUE(CheckPlacement(problem, BestOf(search)).ok()) << granted;
    whole += search.best_solver() == "divide" ? 1 : 0;
  }
  EXPECT_GT(whole, 0);
}

// Short lifetimes one after the other, all of one size each time; two long ones over them.
Problem ALongRow() {
  Problem problem{{Block(0, 400, 7), Block(0, 300, 5)}};
  for (int i = 0; i < 400; ++i) problem.buffers.push_back(Block(i, i + 1, 10 + i % 3));
  return problem;
}

TEST(Divide, WhatLivesLongestLiesAtTheBottom) {
  const Instance instance = Compress(ALongRow());
  Search search(instance, 0, {.steps = 0});
  BeginDivide(search, "divide", kMembers, {10, 40})();
  EXPECT_EQ(search.best_slab(), 24);
  EXPECT_EQ(search.best()[0] + search.best()[1], 7) << "one at 0, the other on it";
}

TEST(Divide, EqualSeedsAndStepsGiveEqualPlacements) {
  RandomProblems random(47);
  const Instance instance = Compress(random.Make({.buffers = 2000, .ticks = 4000, .max_size = 100000}));
  std::vector<int64_t> first;
  for (int run = 0; run < 2; ++run) {
    Search search(instance, 0, {.seconds = 3600, .seed = 5, .steps = 2000000});
    BeginDivide(search, "divide", kMembers, {100, 400})();
    if (run == 0) first = search.best();
    EXPECT_EQ(search.best(), first);
  }
}

TEST(Divide, MoreStepsLowerTheHighestStretch) {
  RandomProblems random(53);
  const Instance instance = Compress(random.Make({.buffers = 2000, .ticks = 20000, .max_size = 100000}));
  int64_t slabs[2];
  for (int run = 0; run < 2; ++run) {
    Search search(instance, LowerBound(instance).count(), {.seconds = 3600, .steps = run * 10000000});
    BeginDivide(search, "divide", kMembers, {100, 400})();
    slabs[run] = search.best_slab();
  }
  EXPECT_LT(slabs[1], slabs[0]);
}

TEST(Divide, OneStretchIsTheFirstMembers) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(1, 3, 3), Block(2, 4, 4)}});
  Search search(instance, 0, {});
  BeginDivide(search, "divide", kMembers)();
  EXPECT_EQ(search.best_slab(), 7);
  EXPECT_EQ(search.best_solver(), "divide");
}

TEST(Divide, OffersNothingWhenCancelled) {
  const Instance instance = Compress(ALongRow());
  const std::atomic<bool> cancel = true;
  Search search(instance, 0, {.cancel = &cancel});
  BeginDivide(search, "divide", kMembers, {10, 40})();
  EXPECT_EQ(search.best_slab(), Search::kNothing);
}

}  // namespace
}  // namespace reprise::planner
