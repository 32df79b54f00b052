// Why: how the exact search is asked decides what it answers in the time that there is.
#include "planner/exact_solver.h"

#include <pthread.h>

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

// What it is asked about has nearly as many levels as buffers. Returns whether it had an answer.
void* Deep(void*) {
  RandomProblems random(5);
  Problem problem;
  for (int i = 0; i < 1990; ++i)
    problem.buffers.push_back(Block(i, 4000 - i, 1024 * (1 + random.Below(300)), 512 << random.Below(4)));
  static char answered;
  const auto solution = SolveWith("exact", problem, {.seconds = 3600, .steps = 5'000'000});
  EXPECT_TRUE(solution.ok() || absl::IsUnimplemented(solution.status())) << solution.status();
  return solution.ok() ? &answered : nullptr;
}

// A job may have set how large its threads' stacks are, and one that overflows ends the job.
TEST(ExactSolver, StaysWithinTheStack) {
  for (const size_t kib : {64, 128, 192, 256, 512, 8192}) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kib << 10);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, Deep, nullptr), 0);
    void* answered = nullptr;
    pthread_join(thread, &answered);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(answered != nullptr, kib > 640) << kib;
  }
}

}  // namespace
}  // namespace reprise::planner
