// What lives long in a pipeline leaves together, and lies together.
#include "planner/together.h"

#include <atomic>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

const Budget kPlenty{.seconds = 3600};

// Weights, and micro-batches of a stage that has eight in flight, one as much as twice as long as another: the way up of
// one, then the way down of the one eight before it. What a layer keeps on the way up goes on the way down; meanwhile
// something larger than that lives for a moment. A part of it waits for `delay` more micro-batches, for its gradients of weights
// (zero bubble: Qi, Wan, Huang and Lin, *Zero bubble pipeline parallelism*, 2024).
Problem OneForwardOneBackward(int64_t micro_batches, int64_t delay = 0) {
  constexpr int64_t kInFlight = 8, kLayers = 4, kMoments = 4;
  RandomProblems random(71);
  Problem problem;
  const auto moment = [](int64_t pass, int64_t step) { return kMoments * (kLayers * pass + step); };
  const int64_t end = moment(2 * (micro_batches + kInFlight + delay), 0);
  for (int i = 0; i < 3; ++i) problem.buffers.push_back(Block(0, end, 50'000));
  for (int64_t batch = 0; batch < micro_batches; ++batch) {
    const int64_t up = 2 * batch, down = 2 * (batch + kInFlight) - 1;
    const int64_t size = 1000 + random.Below(1000);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const int64_t upwards = moment(up, layer), downwards = moment(down, kLayers - 1 - layer);
      for (const int64_t of_size : {1, 4})
        problem.buffers.push_back(Block(upwards + 1, downwards + 2, of_size * size));
      problem.buffers.push_back(Block(upwards + 1, downwards + 2 + moment(2 * delay, 0), 3 * size));
      problem.buffers.push_back(Block(upwards, upwards + 3, 6 * size));
      problem.buffers.push_back(Block(downwards, downwards + 3, 6 * size));
    }
  }
  return problem;
}

void ExpectValid(const Problem& problem, const Search& search) {
  Placement placement;
  for (const int64_t offset : search.best()) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(search.best_slab());
  EXPECT_TRUE(CheckPlacement(problem, placement).ok()) << CheckPlacement(problem, placement);
}

TEST(Together, LongIsWhatIsFarFromTheRest) {
  EXPECT_EQ(LeastOfLong(Compress({})), 0);
  Problem problem;
  for (int64_t i = 0; i < 100; ++i) problem.buffers.push_back(Block(i, i + 1, 1));
  EXPECT_EQ(LeastOfLong(Compress(problem)), 0) << "all live equally long";
  problem.buffers.push_back(Block(0, 2, 1));
  problem.buffers.push_back(Block(10, 40, 1));
  problem.buffers.push_back(Block(30, 80, 1));
  EXPECT_EQ(LeastOfLong(Compress(problem)), 30);
  problem.buffers.push_back(Pinned(0, 20, 1, 100));
  EXPECT_EQ(LeastOfLong(Compress(problem)), 30) << "pinned ones are not laid";
}

TEST(Together, APipelineComesCloseToItsBound) {
  const Problem problem = OneForwardOneBackward(100);
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  PlaceLongTogether(search, "tested");
  EXPECT_LE(search.best_slab(), search.target() * 102 / 100);
  ExpectValid(problem, search);

  Budget budget{.seconds = 3600, .steps = 1'000'000, .threads = 2};
  const auto with = Solve(problem, budget);
  budget.rules.SwitchOff("together-long");
  const auto without = Solve(problem, budget);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_LE(with->placement.slab.count(), search.best_slab());
  EXPECT_GT(without->placement.slab.count(), search.best_slab());
}

TEST(Together, WhatWaitsForLongerLeavesOneHole) {
  for (const int64_t delay : {1, 2, 3, 4}) {
    const Problem problem = OneForwardOneBackward(100, delay);
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), kPlenty);
    PlaceLongTogether(search, "tested");
    EXPECT_LE(search.best_slab(), search.target() * 102 / 100) << delay;
    ExpectValid(problem, search);
  }
}

TEST(Together, LiesAboveWhatIsPinned) {
  Problem problem = OneForwardOneBackward(100);
  int64_t offset = 0;
  for (int i = 0; i < 3; ++i) {  // the weights
    problem.buffers[i].pinned = Offset(offset);
    offset += 100'000;
  }
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  PlaceLongTogether(search, "tested");
  EXPECT_LE(search.best_slab(), search.target() * 102 / 100);
  ExpectValid(problem, search);
}

TEST(Together, WhatIsPinnedIsInTheWayUntilItEnds) {
  for (const bool at_the_end : {false, true}) {
    Problem problem = OneForwardOneBackward(100, 1);
    const int64_t end = problem.buffers[0].upper.count();
    for (int64_t k = 0; k < 4; ++k) {  // two and two at the same addresses, one after the other
      const int64_t from = at_the_end ? end - 100 : 0;
      problem.buffers.push_back(Pinned(from + 50 * (k / 2), from + 50 * (k / 2) + 50, 50'000,
                                       300'000 + 60'000 * (k % 2) - 20'000 * (k / 2)));
    }
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), kPlenty);
    PlaceLongTogether(search, "tested");
    ASSERT_NE(search.best_slab(), Search::kNothing);
    EXPECT_LE(search.best_slab(), search.target() * 102 / 100);
    ExpectValid(problem, search);
  }
}

TEST(Together, HasItsTurnRightBehindTheFirstAnswer) {
  const Problem problem = OneForwardOneBackward(300);
  const auto first = Solve(problem, {.seconds = 3600, .steps = 0});
  ASSERT_TRUE(first.ok());
  const auto next = Solve(problem, {.seconds = 3600, .steps = 6 * first->steps});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->solver, "together-long");
  EXPECT_LT(next->placement.slab.count(), 1.02 * static_cast<double>(next->lower_bound.count()));
  EXPECT_GT(first->placement.slab.count(), 1.04 * static_cast<double>(next->lower_bound.count()));
}

TEST(Together, ALongPipelineDoesNotWaitUntilItHasBeenDivided) {
  const Problem problem = OneForwardOneBackward(18'000);
  const auto first = Solve(problem, {.seconds = 3600, .steps = 1});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->solver, "divide");
  EXPECT_GT(first->steps, 2'000'000) << "soon enough for all to begin at once";
  const auto next = Solve(problem, {.seconds = 3600, .steps = 7 * first->steps});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->solver, "together-long");
  EXPECT_LT(next->placement.slab, first->placement.slab);
}

TEST(Together, LaysNothingThatCannotComeOutLower) {
  const Problem problem = OneForwardOneBackward(20);
  const Instance instance = Compress(problem);
  Search search(instance, 0, kPlenty);
  PlaceLongTogether(search, "tested");
  const int64_t best = search.best_slab();
  const int64_t steps = search.steps();
  PlaceLongTogether(search, "tested");
  EXPECT_EQ(search.best_slab(), best);
  EXPECT_LT(search.steps(), 2 * steps) << "given up at the first that ends as high";
}

TEST(Together, LeavesItWhereVeryManyHolesAreTooSmall) {
  constexpr int64_t kBuffers = 40'000;
  RandomProblems random(77);
  Problem problem;
  for (int64_t i = 0; i < kBuffers; ++i)
    problem.buffers.push_back(Block(i, i + 1 + random.Below(kBuffers / 3), 1 + random.Below(1 << 20)));
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  PlaceLongTogether(search, "tested");
  EXPECT_LT(search.steps(), 150 * kBuffers) << "to look at all of them takes 193 a buffer";
}

TEST(Together, StopsWhenItIsTold) {
  const Problem problem = OneForwardOneBackward(100);
  const Instance instance = Compress(problem);
  std::atomic<bool> cancel = true;
  Budget budget = kPlenty;
  budget.cancel = &cancel;
  Search search(instance, 0, budget);
  PlaceLongTogether(search, "tested");
  EXPECT_EQ(search.best_slab(), Search::kNothing);
  EXPECT_LE(search.steps(), 2 * instance.buffers());
}

TEST(Together, PlacementsOfProblemsOfEveryKindAreValid) {
  RandomProblems random(72);
  int placed = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = random.Make(OfEveryKind(round));
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), kPlenty);
    PlaceLongTogether(search, "tested");
    if (search.best_slab() == Search::kNothing) continue;
    ++placed;
    ExpectValid(problem, search);
  }
  EXPECT_GT(placed, 10);
}

}  // namespace
}  // namespace reprise::planner
