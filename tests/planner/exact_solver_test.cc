// Why: how the exact search is asked decides what it answers in the time that there is.
#include "planner/exact_solver.h"

#include "gtest/gtest.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

// Of perfect packings in a grain of 1024 whose sizes lack a byte or two of it, how many are decided in so many steps.
int Decided(const Budget& budget) {
  RandomProblems random(44);
  int decided = 0;
  for (int round = 0; round < 20; ++round) {
    Problem problem = Square(random, 150);
    for (Buffer& buffer : problem.buffers) buffer.size = Bytes(buffer.size.count() * 1024 - random.Below(3));
    problem.capacity = Bytes(64 * 1024);
    const auto solution = SolveWith("exact", problem, budget);
    if (!solution.ok()) continue;
    EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
    decided += solution->placement.slab <= *problem.capacity ? 1 : 0;
  }
  return decided;
}

TEST(ExactSolver, DecidesWhatIsNearlyAPackingOfOneGrain) {
  Budget budget{.seconds = 3600, .steps = 2'000};
  const int with = Decided(budget);
  budget.rules.SwitchOff("exact-coarse");
  EXPECT_GT(with, Decided(budget) + 2);
}

}  // namespace
}  // namespace reprise::planner
