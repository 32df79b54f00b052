#include "planner/exact.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/problem.h"
#include "planner/search.h"
#include "planner/validator.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using Answer = ExactSearch::Answer;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

bool GoOn(int64_t) { return false; }

// The answer for one capacity; a placement is judged.
Answer Decide(ExactSearch& search, const Problem& problem, int64_t capacity, int64_t nodes = kNoLimit) {
  std::vector<int64_t> offsets;
  const Answer answer = search.Decide(capacity, nodes, GoOn, offsets);
  if (answer != Answer::kPlaced) return answer;
  Placement placement;
  for (int64_t offset : offsets) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(SlabOf(Compress(problem), offsets));
  EXPECT_TRUE(CheckPlacement(problem, placement).ok()) << CheckPlacement(problem, placement);
  EXPECT_LE(placement.slab.count(), capacity);
  return answer;
}

Answer Decide(const Problem& problem, int64_t capacity, int64_t nodes = kNoLimit) {
  const Instance instance = Compress(problem);
  ExactSearch search(instance, 1);
  return Decide(search, problem, capacity, nodes);
}

TEST(Exact, NothingToPlace) {
  EXPECT_EQ(Decide(Problem{}, 0), Answer::kPlaced);
  EXPECT_EQ(Decide(Problem{.buffers = {Pinned(0, 1, 5, 7)}}, 0), Answer::kPlaced);
}

TEST(Exact, TheLoadIsEnoughOrOneByteTooMuch) {
  const Problem problem{.buffers = {Block(0, 2, 3), Block(1, 3, 5), Block(2, 4, 2)}};
  EXPECT_EQ(Decide(problem, 8), Answer::kPlaced);
  EXPECT_EQ(Decide(problem, 7), Answer::kRefuted);
}

// A budget of steps is one of work: a search that asks height after height, each refuted at once, must come
// to its end.
TEST(Exact, WhatIsRefutedAtOnceIsWorkToo) {
  Problem problem;
  for (int i = 0; i < 100; ++i) problem.buffers.push_back(Block(i, i + 20, 10 + i % 7));
  const Instance instance = Compress(problem);
  ExactSearch search(instance, 1);
  std::vector<int64_t> offsets;
  int64_t steps = 0;
  const auto count = [&](int64_t worked) {
    steps += worked;
    return false;
  };
  for (int64_t height = 100; height < 150; ++height)
    ASSERT_EQ(search.Decide(height, kNoLimit, count, offsets), Answer::kRefuted);
  EXPECT_EQ(search.nodes(), 0);
  int64_t slots = 0;
  for (int i = 0; i < 100; ++i) slots += instance.length(i);
  EXPECT_GE(steps, 49 * slots / 8) << "all but the last have been told, each of all slots of all buffers";
}

// Around a cycle of three slots, each pair of neighbours shares one: three bytes are needed where the load is
// two.
TEST(Exact, ACycleNeedsMoreThanItsLoad) {
  const Problem problem{.buffers = {Block(0, 2, 1), Block(1, 3, 1), Block(2, 4, 1)}, .period = 3};
  EXPECT_EQ(Decide(problem, 2), Answer::kRefuted);
  EXPECT_EQ(Decide(problem, 3), Answer::kPlaced);
}

TEST(Exact, AnInstanceThatIsTooLargeIsNotLookedAt) {
  Problem problem;
  for (int64_t i = 0; i <= ExactSearch::kMostBuffers; ++i) problem.buffers.push_back(Block(i, i + 1, 1));
  EXPECT_EQ(Decide(problem, 1), Answer::kGaveUp);
  problem.buffers.pop_back();
  EXPECT_EQ(Decide(problem, 1), Answer::kPlaced);
}

TEST(Exact, NeitherIsOneWithTooManyRanges) {
  Problem problem;
  for (int i = 0; i < 400; ++i) {
    Buffer buffer = Block(i % 2, i % 2 + 201, 1);  // each in use in the gaps of the next
    for (int64_t k = 0; k < 100; ++k)
      buffer.gaps.push_back({Tick(i % 2 + 1 + 2 * k), Tick(i % 2 + 2 + 2 * k)});
    problem.buffers.push_back(buffer);
  }
  EXPECT_EQ(Decide(problem, 200), Answer::kGaveUp);
  problem.buffers.resize(200);
  EXPECT_EQ(Decide(problem, 100), Answer::kPlaced);
}

// Half of the rounds are small cycles, whose least slab is often above their load.
Problem Tiny(RandomProblems& random, int round) {
  return random.Make({.buffers = 1 + static_cast<int>(random.Below(7)),
                      .ticks = 2 + random.Below(7),
                      .max_size = 2 + random.Below(8),
                      .cyclic = (round & 1) != 0,
                      .aligned = (round & 6) == 2,
                      .pinned = (round & 12) == 4 ? 3 : 0,
                      .gaps = (round & 24) == 8,
                      .outside = (round & 48) == 16});
}

void CheckAgainstBruteForce(const ExactRules& rules, int rounds) {
  RandomProblems random(41);
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = Tiny(random, round);
    const int64_t least = BruteForce(problem).Least().count();
    const Instance instance = Compress(problem);
    ExactSearch search(instance, 1, rules);
    ASSERT_EQ(Decide(search, problem, least), Answer::kPlaced) << round;
    if (least > 0) {
      ASSERT_EQ(Decide(search, problem, least - 1), Answer::kRefuted) << round;
    }
    ASSERT_EQ(Decide(search, problem, least), Answer::kPlaced) << round << ": the capacity changes back";
  }
}

TEST(Exact, AgreesWithBruteForce) { CheckAgainstBruteForce({}, 4000); }

TEST(Exact, EachRuleCanBeLeftOut) {
  CheckAgainstBruteForce({.not_first = false}, 500);
  CheckAgainstBruteForce({.components = false}, 500);
  CheckAgainstBruteForce({.trouble = false}, 500);
  CheckAgainstBruteForce({.rivals = false}, 500);
  CheckAgainstBruteForce({.perturbed = false}, 500);
  CheckAgainstBruteForce({.strategies = false}, 500);
}

TEST(Exact, FillsSquaresWithoutWaste) {
  RandomProblems random(43);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = Square(random, 20 + round % 60);
    ASSERT_EQ(Decide(problem, 64), Answer::kPlaced) << round;
  }
}

TEST(Exact, GoesOnWhereItGaveUp) {
  RandomProblems random(47);
  const Problem problem = Square(random, 60);
  const Instance instance = Compress(problem);
  ExactSearch whole(instance, 1);
  ASSERT_EQ(Decide(whole, problem, 64, 5'000'000), Answer::kPlaced);
  ExactSearch pieces(instance, 1);
  EXPECT_EQ(Decide(pieces, problem, 64, 10), Answer::kGaveUp);
  int calls = 1;
  while (Decide(pieces, problem, 64, 100'000) == Answer::kGaveUp) ASSERT_LT(++calls, 100);
}

TEST(Exact, StopsWhenToldTo) {
  RandomProblems random(53);
  const Problem problem = Square(random, 300);
  const Instance instance = Compress(problem);
  ExactSearch search(instance, 1);
  std::vector<int64_t> offsets;
  int64_t worked = 0;
  const auto stop = [&](int64_t steps) { return (worked += steps) > 0; };
  EXPECT_EQ(search.Decide(64, kNoLimit, stop, offsets), Answer::kGaveUp);
  EXPECT_GT(worked, 0);
  EXPECT_LT(search.nodes(), 1000);
}

TEST(Exact, AsksWhetherToStopAtLeastEveryFewSteps) {
  RandomProblems random(53);
  const Problem problem =
      random.Make({.buffers = ExactSearch::kMostBuffers, .ticks = 4000, .max_size = 1000});
  const Instance instance = Compress(problem);
  ExactSearch search(instance, 1);
  std::vector<int64_t> offsets;
  int64_t most = 0;
  int64_t sum = 0;
  const auto stop = [&](int64_t steps) {
    most = std::max(most, steps);
    return (sum += steps) > 20'000'000;
  };
  (void)search.Decide(LowerBound(problem).count(), kNoLimit, stop, offsets);
  EXPECT_LT(most, 200'000) << "of which one node may take half";
}

TEST(Exact, TheSameSeedTheSameSearch) {
  RandomProblems random(59);
  const Problem problem = Square(random, 100);
  const Instance instance = Compress(problem);
  std::vector<int64_t> offsets[2];
  int64_t nodes[2];
  for (int k = 0; k < 2; ++k) {
    ExactSearch search(instance, 7);
    (void)search.Decide(64, 20000, GoOn, offsets[k]);
    nodes[k] = search.nodes();
  }
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(nodes[0], nodes[1]);
}

}  // namespace
}  // namespace reprise::planner
