// Lifetimes that are dear where memory is scarce: a case by hand where the price decides, one where only
// what a pass has shown does, and what both and chains bring on dense problems that best-fit alone does not
// solve.
#include "planner/best_fit_solver.h"

#include <algorithm>
#include <initializer_list>
#include <random>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Rules Without(std::initializer_list<std::string_view> off) {
  Rules rules;
  for (const std::string_view rule : off) rules.SwitchOff(rule);
  return rules;
}

int64_t Slab(const Problem& problem, const Rules& rules = {}) {
  const Instance instance = Compress(problem);
  Budget budget;
  budget.rules = rules;
  Search search(instance, 0, budget);
  PlaceByBestFit(search, "best-fit");
  return search.best_slab();
}

TEST(BestFitSolver, LaysWhatLivesThroughThePeakFirst) {
  // The peak is tick 8. The two longest lifetimes end before it and begin after it, and between them nothing
  // fits: their two bytes of height are lost where not one can be spared.
  Problem problem{{Block(0, 8, 2), Block(9, 20, 2), Block(7, 9, 3), Block(8, 10, 3), Block(7, 10, 3)}};
  for (int64_t tick = 0; tick < 6; ++tick) {  // otherwise long lifetimes would be of few slots
    problem.buffers.push_back(Block(tick, tick + 1, 1));
    problem.buffers.push_back(Block(tick + 11, tick + 12, 1));
  }
  EXPECT_EQ(Slab(problem), 9);
  EXPECT_EQ(Slab(problem, Without({kBestFitPrices})), 11);
}

TEST(BestFitSolver, WithoutPricesItIsTheLongestLifetime) {
  const Problem problem{{Block(0, 1, 5), Block(1, 3, 2), Block(0, 3, 1), Block(2, 3, 9), Block(1, 2, 1)}};
  EXPECT_EQ(Slab(problem, Without({kBestFitPrices})), 12);
}

// The gap above the bound, in thousandths.
double GapInThousandths(std::string_view solver, const Problem& problem, const Rules& rules = {}) {
  Budget budget;
  budget.seconds = 1000;
  budget.steps = 2'000'000;
  budget.rules = rules;
  const auto solution = SolveWith(solver, problem, budget);
  EXPECT_TRUE(solution.ok() && CheckPlacement(problem, solution->placement).ok());
  return 1000 * (static_cast<double>(solution->placement.slab.count()) /
                     static_cast<double>(solution->lower_bound.count()) -
                 1);
}

// Summed up over dense problems.
double Gaps(bool cyclic, const Rules& rules) {
  RandomProblems random(11);
  double gaps = 0;
  for (int round = 0; round < 6; ++round) {
    gaps += GapInThousandths(
        "best-fit", random.Make({.buffers = 1500, .ticks = 600, .max_size = 3000, .cyclic = cyclic}), rules);
  }
  return gaps;
}

TEST(BestFitSolver, PricesAndWhatAPassHasShownBothHelp) {
  for (const bool cyclic : {false, true}) {
    const double one_pass = Gaps(cyclic, Without({kBestFitFeedback}));
    EXPECT_LT(one_pass, 0.9 * Gaps(cyclic, Without({kBestFitFeedback, kBestFitPrices}))) << cyclic;
    EXPECT_LT(Gaps(cyclic, {}), 0.7 * one_pass) << cyclic;
  }
}

TEST(BestFitSolver, ChainsHelpWhereSizesComeAgain) {
  // Hardly any lifetime begins where another one ends: the best one leaves a part of the line free.
  RandomProblems random(12);
  double with = 0, without = 0;
  for (int round = 0; round < 4; ++round) {
    Problem problem{.period = 100'000};
    for (int i = 0; i < 1500; ++i) {
      const int64_t begin = random.Below(100'000);
      problem.buffers.push_back(
          Block(begin, begin + 1 + random.Below(50'000), int64_t{50} << random.Below(5)));
    }
    with += GapInThousandths("chains", problem);
    without += GapInThousandths("best-fit", problem);
  }
  EXPECT_LT(with, 0.8 * without);
}

TEST(BestFitSolver, WithChainsTooNothingOverlaps) {
  RandomProblems random(8);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random.Make({.buffers = 2 + static_cast<int>(random.Below(60)),
                                         .ticks = 40,
                                         .max_size = 50,
                                         .cyclic = round % 2 == 0,
                                         .aligned = round % 3 == 0,
                                         .pinned = static_cast<int>(random.Below(4))});
    const auto solution = SolveWith("chains", problem, {});
    ASSERT_TRUE(solution.ok());
    EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok()) << round;
  }
}

TEST(BestFitSolver, TheFirstTurnIsOnePass) {
  RandomProblems random(3);
  const Problem problem = random.Make({.buffers = 300, .ticks = 100, .max_size = 500, .cyclic = true});
  const Instance instance = Compress(problem);
  Search once(instance, 0, {}), again(instance, 0, {});
  PlaceByBestFit(once, "best-fit");
  EXPECT_TRUE(BeginBestFit(again, "best-fit")());
  EXPECT_EQ(once.steps(), again.steps());
  EXPECT_EQ(once.best(), again.best());
}

TEST(BestFitSolver, GoesOnWithAPassThatWasStopped) {
  RandomProblems random(4);
  const Problem problem = random.Make({.buffers = 400, .ticks = 100, .max_size = 500, .cyclic = true});
  const Instance instance = Compress(problem);
  Search whole(instance, 0, {}), parts(instance, 0, {});
  const Turn at_once = BeginBestFit(whole, "best-fit"), in_parts = BeginBestFit(parts, "best-fit");
  at_once();
  in_parts();
  whole.Grant(60'000);
  at_once();
  while (parts.steps() < whole.steps()) {
    parts.Grant(100);
    in_parts();
  }
  EXPECT_EQ(whole.best(), parts.best());
}

TEST(BestFitSolver, GivesUpInTheEnd) {
  // Three that each meet the other two, and never all at once: 2 is the largest load, and no placement has it.
  const Problem problem{{Block(0, 7, 1), Block(6, 13, 1), Block(12, 21, 1)}, 20};
  const Instance instance = Compress(problem);
  Search search(instance, 2, {});
  const Turn turn = BeginBestFit(search, "best-fit");
  int turns = 0;
  while (turn()) ASSERT_LT(++turns, 10);
  EXPECT_EQ(search.best_slab(), 3);
}

// Steps of a net of twenty layers whose sizes are never quite the same again, and many small buffers besides.
Problem LayersAndDust(uint32_t seed) {
  constexpr int64_t kLayers = 20;
  constexpr int64_t kStep = 40 * kLayers;
  constexpr int64_t kSteps = 4;
  std::mt19937 random(seed);
  Problem problem;
  const auto about = [&](int64_t size) {
    return size + (static_cast<int64_t>(random() % 2001) - 1000) * size / 100'000;
  };
  for (int64_t begin = 0; begin < kSteps * kStep; begin += kStep) {
    for (int64_t i = 0; i < kLayers; ++i) {
      const int64_t forward = begin + 10 * i;
      const int64_t backward = begin + kStep - 20 * i;
      problem.buffers.push_back(Block(forward, backward - 1, about(100'000 * (1 + i % 4))));
      const int64_t scratch = about(150'000 * (1 + i % 3));
      problem.buffers.push_back(Block(forward + 3, forward + 9, scratch));
      problem.buffers.push_back(Block(backward - 15, backward - 2, scratch));
    }
    for (int i = 0; i < 600; ++i) {
      const int64_t lower = begin + random() % kStep;
      const int64_t upper = std::min<int64_t>(kSteps * kStep, lower + 1 + random() % (kStep / 2));
      problem.buffers.push_back(Block(lower, upper, 1 + random() % 200));
    }
  }
  return problem;
}

TEST(BestFitSolver, SmallBuffersFindRoomAroundTheLargeOnes) {
  for (const uint32_t seed : {1, 2, 3}) {
    const Problem problem = LayersAndDust(seed);
    const Instance instance = Compress(problem);
    const int64_t bound = LowerBound(instance).count();
    Search search(instance, bound, {.seconds = 1000, .steps = 2'000'000});
    const Turn turn = BeginLargeByBestFit(search, "large");
    while (!search.Over() && turn()) {
    }
    EXPECT_LE(search.best_slab() - bound, bound / 10'000) << seed;
    Placement placement{.slab = Bytes(search.best_slab())};
    for (const int64_t offset : search.best()) placement.offsets.emplace_back(offset);
    EXPECT_TRUE(CheckPlacement(problem, placement).ok());
  }
}

}  // namespace
}  // namespace reprise::planner
