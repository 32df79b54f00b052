// A bound that is too high would call a placement optimal that is not, and a capacity too small that is
// enough.
#include "planner/clique.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

int64_t Refuted(const Problem& problem) {
  const Instance instance = Compress(problem);
  Search search(instance, 0, {.seconds = 3600});
  const Turn turn = BeginClique(search, "clique");
  while (turn()) {
  }
  return search.refuted();
}

// The heaviest set of buffers of which any two share a tick, by trying all sets.
int64_t HeaviestClique(const Problem& problem) {
  const size_t n = problem.buffers.size();
  int64_t heaviest = 0;
  for (uint32_t set = 0; set < uint32_t{1} << n; ++set) {
    int64_t weight = 0;
    bool clique = true;
    for (size_t a = 0; a < n; ++a) {
      if ((set >> a & 1) == 0) continue;
      weight += problem.buffers[a].size.count();
      for (size_t b = 0; b < a; ++b) {
        clique &= (set >> b & 1) == 0 || ShareTick(problem, problem.buffers[a], problem.buffers[b]);
      }
    }
    if (clique) heaviest = std::max(heaviest, weight);
  }
  return heaviest;
}

// Each shares a tick with each other one, and no tick belongs to all three.
Problem ThreeAroundTheRing() {
  Problem problem{{Block(0, 3, 10), Block(2, 5, 10), Block(4, 7, 10)}};
  problem.period = 6;
  return problem;
}

TEST(Clique, OverlapInPairsIsEnough) {
  EXPECT_EQ(LowerBound(ThreeAroundTheRing()), Bytes(20));
  EXPECT_EQ(Refuted(ThreeAroundTheRing()), 29);
}

TEST(Clique, TheAnswerIsProvenAtIt) {
  const auto solution = Solve(ThreeAroundTheRing(), {.seconds = 3600});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->placement.slab, Bytes(30));
  EXPECT_EQ(solution->lower_bound, Bytes(30));
  EXPECT_TRUE(solution->proven_optimal);
}

TEST(Clique, NothingIsToldOfALine) {
  EXPECT_EQ(Refuted({{Block(0, 3, 10), Block(2, 5, 10), Block(4, 7, 10)}}), -1);
}

TEST(Clique, PinnedBuffersAndGapsAreLeftOut) {
  Problem problem = ThreeAroundTheRing();
  problem.buffers[0].pinned = Offset(0);
  EXPECT_EQ(Refuted(problem), 19);
  problem = ThreeAroundTheRing();
  problem.buffers[0] = WithGaps(problem.buffers[0], {{1, 2}});
  problem.buffers.push_back(Block(1, 2, 1));  // which makes use of the gap
  EXPECT_EQ(Refuted(problem), 19);
}

TEST(Clique, IsTheHeaviestOneOfSmallRings) {
  RandomProblems problems(5);
  int above_load = 0;
  for (int i = 0; i < 3000; ++i) {
    const int buffers = 3 + static_cast<int>(problems.Below(7));
    const Problem problem =
        problems.Make({.buffers = buffers, .ticks = 4 + problems.Below(12), .cyclic = true});
    if (!Compress(problem).cyclic) continue;
    const int64_t heaviest = HeaviestClique(problem);
    ASSERT_EQ(Refuted(problem), heaviest - 1) << "problem " << i;
    above_load += heaviest > MaxLive(problem).count();
    if (buffers <= 6) {
      ASSERT_LE(heaviest, BruteForce(problem).Least().count()) << "problem " << i;
    }
  }
  EXPECT_GT(above_load, 100) << "or the load would do";
}

}  // namespace
}  // namespace reprise::planner
