// Random problems with every mix of features: whatever a solver answers must pass the validator, and no bound
// may be above what brute force reaches. Small random cases find what hand-written ones forget.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/problem.h"
#include "planner/validator.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

RandomShape ShapeOf(int round, int buffers, int64_t ticks, int64_t max_size) {
  return {.buffers = buffers,
          .ticks = ticks,
          .max_size = max_size,
          .cyclic = (round & 1) != 0,
          .aligned = (round & 2) != 0,
          .pinned = (round & 4) != 0 ? buffers / 2 : 0,
          .gaps = (round & 8) != 0,
          .outside = (round & 16) != 0,
          .previous = (round & 32) != 0};
}

// The exact search looks at small instances only, and says so.
bool CannotHandle(const absl::StatusOr<Solution>& solution) {
  return absl::IsUnimplemented(solution.status());
}

TEST(Solvers, TinyProblemsAgainstBruteForce) {
  RandomProblems random(17);
  int optimal = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    const Problem problem =
        random.Make(ShapeOf(round, 1 + static_cast<int>(random.Below(6)), 1 + random.Below(9), 12));
    const Bytes least = BruteForce(problem).Least();
    ASSERT_LE(LowerBound(problem), least) << round;
    for (std::string_view name : SolverNames()) {
      const auto solution = SolveWith(name, problem, {.seconds = 0});
      if (CannotHandle(solution)) continue;
      ASSERT_TRUE(solution.ok()) << name << solution.status();
      ASSERT_TRUE(CheckPlacement(problem, solution->placement).ok())
          << round << name << CheckPlacement(problem, solution->placement);
      ASSERT_GE(solution->placement.slab, least) << round << name;
      ASSERT_LE(solution->lower_bound, least) << round << name << " proves what is not so";
      ASSERT_EQ(solution->proven_optimal, solution->placement.slab == solution->lower_bound);
    }
    const auto best = Solve(problem, {.seconds = 60, .steps = 20000, .threads = 1 + round % 2});
    ASSERT_TRUE(best.ok());
    ASSERT_LE(best->lower_bound, least) << round;
    optimal += best->placement.slab == least;
  }
  EXPECT_GT(optimal, kRounds * 95 / 100) << "the portfolio misses what is easy";
}

// Lanes are laid on top of each other. Where nothing is pinned and all bytes will do, that is the least.
TEST(Solvers, LanesApartAgainstBruteForce) {
  RandomProblems random(19);
  for (int round = 0; round < 500; ++round) {
    RandomShape shape = ShapeOf(round, 1 + static_cast<int>(random.Below(6)), 1 + random.Below(9), 12);
    shape.lanes = 2 + round % 3;
    Problem problem = random.Make(shape);
    problem.reuse = Reuse::kForbidden;
    const Bytes least = BruteForce(problem).Least();
    const auto solution = Solve(problem, {.seconds = 60, .steps = 20000, .threads = 1 + round % 2});
    ASSERT_TRUE(solution.ok()) << solution.status();
    ASSERT_TRUE(CheckPlacement(problem, solution->placement).ok())
        << round << CheckPlacement(problem, solution->placement);
    ASSERT_LE(solution->lower_bound, least) << round;
    ASSERT_GE(solution->placement.slab, least) << round;
    if (!shape.aligned && shape.pinned == 0) {
      EXPECT_EQ(solution->placement.slab, least) << round;
    }
  }
}

TEST(Solvers, PricedLanesAgainstBruteForce) {
  RandomProblems random(23);
  int cheapest = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    RandomShape shape = ShapeOf(round, 1 + static_cast<int>(random.Below(4)), 1 + random.Below(9), 4);
    shape.lanes = 2 + round % 2;
    Problem problem = random.Make(shape);
    problem.reuse = Reuse::kPriced;
    problem.crossing_price = Bytes(random.Below(6));
    const auto solution = Solve(problem, {.seconds = 60, .steps = 20000, .threads = 1 + round % 2});
    ASSERT_TRUE(solution.ok()) << solution.status();
    const Placement& placement = solution->placement;
    ASSERT_TRUE(CheckPlacement(problem, placement).ok()) << round << CheckPlacement(problem, placement);
    ASSERT_EQ(solution->crossings,
              CrossingsByByte(problem, {placement.offsets.begin(), placement.offsets.end()}))
        << round;
    const int64_t least = LeastCost(problem, std::max(placement.slab, Bytes(20))).Find();
    ASSERT_LE(solution->lower_bound.count(), least) << round;
    cheapest += placement.slab.count() + solution->crossings * problem.crossing_price.count() == least;
  }
  EXPECT_GT(cheapest, kRounds * 95 / 100);
}

TEST(Solvers, MiddlingProblemsPassTheValidator) {
  RandomProblems random(29);
  for (int round = 0; round < 80; ++round) {
    const int buffers = 20 + static_cast<int>(random.Below(200));
    const Problem problem = random.Make(ShapeOf(round, buffers, 2 + random.Below(buffers), 1000));
    ASSERT_TRUE(Validate(problem).ok());
    for (std::string_view name : SolverNames()) {
      const auto solution = SolveWith(name, problem, {.seconds = 0.001});
      if (CannotHandle(solution)) continue;
      ASSERT_TRUE(solution.ok()) << name << solution.status();
      ASSERT_TRUE(CheckPlacement(problem, solution->placement).ok())
          << round << name << CheckPlacement(problem, solution->placement);
      ASSERT_GE(solution->placement.slab, solution->lower_bound);
    }
  }
}

// Iterations of layers that keep something from the way up until the way down, as in training, with some
// noise on the sizes. In a cycle, some of it outlives its iteration.
Problem Training(RandomProblems& random, int iterations, int layers, bool cyclic) {
  Problem problem;
  const int64_t iteration = 8 * layers;
  if (cyclic) problem.period = iterations * iteration;
  for (int64_t k = 0; k < iterations; ++k) {
    for (int64_t i = 0; i < layers; ++i) {
      const auto add = [&](int64_t lower, int64_t upper, int64_t scale) {
        problem.buffers.push_back(Block(k * iteration + lower, k * iteration + upper,
                                        64 * (scale + random.Below(1 + scale / 16)), 64));
      };
      add(4 * i, iteration - 4 * i, 4096);
      add(4 * i + 1, 4 * i + 3, 2048);
      add(4 * i + 2, 4 * i + 6, 100 + i % 7 * 1000);
      add(iteration - 4 * i - 3, iteration - 4 * i + (cyclic ? iteration / 2 : 3), 10);
    }
  }
  return problem;
}

TEST(Solvers, AHundredThousandBuffers) {
  RandomProblems random(31);
  for (bool cyclic : {false, true}) {
    const Problem problem = Training(random, cyclic ? 10 : 50, 500, cyclic);
    ASSERT_TRUE(Validate(problem).ok()) << Validate(problem);
    for (std::string_view name : SolverNames()) {
      const auto solution = SolveWith(name, problem, {.seconds = 0});
      if (CannotHandle(solution)) continue;
      ASSERT_TRUE(solution.ok()) << name << solution.status();
      ASSERT_TRUE(CheckPlacement(problem, solution->placement).ok()) << name;
      std::printf("%-26s %s %.2f %%\n", solution->solver.c_str(), cyclic ? "cyclic" : "linear",
                  100 * Gap(solution->placement.slab, solution->lower_bound));
    }
  }
}

}  // namespace
}  // namespace reprise::planner
