// What the hybrid must do on every instance: answer soundly, repeat itself for a seed, stop when told to.
#include "planner/hybrid.h"

#include <atomic>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

// Chains of long large buffers with short small ones among them, at sizes that first-fit mixes up.
Problem LargeAndSmall(uint64_t seed) {
  RandomProblems random(seed);
  Problem problem;
  for (int i = 0; i < 200; ++i) {
    const int64_t lower = random.Below(100);
    problem.buffers.push_back(Block(lower, lower + 20 + random.Below(20), 1000 + random.Below(9000)));
    const int64_t start = random.Below(140);
    problem.buffers.push_back(Block(start, start + 1 + random.Below(3), 1 + random.Below(50)));
  }
  return problem;
}

TEST(Hybrid, IsDeterministicForASeedAndSteps) {
  const Instance instance = Compress(LargeAndSmall(3));
  std::vector<std::vector<int64_t>> runs;
  for (int run = 0; run < 2; ++run) {
    Search search(instance, 0, {.seconds = 3600, .seed = 5, .steps = 3'000'000});
    BeginHybrid(search, "hybrid")();
    runs.push_back(search.best());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Hybrid, WithoutNoiseItEnds) {
  const Instance instance = Compress(LargeAndSmall(4));
  Search search(instance, 0, {.seconds = 3600});
  EXPECT_FALSE(BeginHybrid(search, "hybrid", {.noise = false})());
  EXPECT_NE(search.best_slab(), Search::kNothing);
}

TEST(Hybrid, EveryRuleMayBeOff) {
  RandomProblems random(8);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random.Make({.buffers = 1 + static_cast<int>(random.Below(60)),
                                         .ticks = 1 + random.Below(40),
                                         .max_size = 1000,
                                         .cyclic = random.Below(2) == 0,
                                         .aligned = random.Below(2) == 0,
                                         .pinned = static_cast<int>(random.Below(10)),
                                         .gaps = random.Below(2) == 0,
                                         .outside = random.Below(2) == 0});
    const auto coin = [&] { return random.Below(2) == 0; };
    const HybridRules rules{coin(), coin(), coin(), coin(), coin(), coin()};
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), {.seconds = 3600, .steps = 50'000});
    BeginHybrid(search, "hybrid", rules)();
    Placement placement;
    for (int64_t offset : search.best()) placement.offsets.emplace_back(offset);
    placement.slab = Bytes(search.best_slab());
    ASSERT_TRUE(CheckPlacement(problem, placement).ok()) << round << CheckPlacement(problem, placement);
  }
}

TEST(Hybrid, StopsWhenGrantedNoMore) {
  const Instance instance = Compress(LargeAndSmall(5));
  Search search(instance, 0, {.seconds = 3600});
  search.Grant(1'000'000);
  BeginHybrid(search, "hybrid")();
  EXPECT_FALSE(search.Over());
  EXPECT_LT(search.steps(), 2'000'000);
}

TEST(Hybrid, GoesOnWhereItWasStopped) {
  const Instance instance = Compress(LargeAndSmall(5));
  Search at_once(instance, 0, {.seconds = 3600, .steps = 4'000'000});
  BeginHybrid(at_once, "hybrid")();
  Search in_turns(instance, 0, {.seconds = 3600, .steps = 4'000'000});
  const Turn turn = BeginHybrid(in_turns, "hybrid");
  int turns = 0;
  for (; !in_turns.Over(); ++turns) {
    in_turns.Grant(200'000);
    if (!turn()) break;
  }
  EXPECT_GT(turns, 10);
  EXPECT_LT(static_cast<double>(in_turns.best_slab()), 1.05 * static_cast<double>(at_once.best_slab()));
}

TEST(Hybrid, OffersNothingWhenCancelledBeforeTheFirstPlacement) {
  const Instance instance = Compress(LargeAndSmall(6));
  const std::atomic<bool> cancel = true;
  Search search(instance, 0, {.cancel = &cancel});
  BeginHybrid(search, "hybrid")();
  EXPECT_EQ(search.best_slab(), Search::kNothing);
}

TEST(Hybrid, FirstFitInItsOrderLeadsToItsPlacement) {
  const Instance instance = Compress(LargeAndSmall(7));
  Search search(instance, 0, {.seconds = 3600, .steps = 2'000'000});
  BeginHybrid(search, "hybrid")();
  const std::vector<int64_t> best = search.best();
  Search again(instance, 0, {.seconds = 3600});
  std::vector<int64_t> offsets;
  ASSERT_EQ(FirstFit(instance).Place(search.best_order(), Search::kNothing, again, offsets),
            FirstFit::Outcome::kComplete);
  EXPECT_EQ(offsets, best);
}

}  // namespace
}  // namespace reprise::planner
