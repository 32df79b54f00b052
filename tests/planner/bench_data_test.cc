// Lifetimes of real models and the hard instances of MiniMalloc, where random problems look harmless: every
// solver's placement is checked, and the best of the constructive ones on real models must stay as good as it
// was. Needs the folder that REPRISE_BENCH names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/problem.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Problem ReadLifetimes(const std::filesystem::path& path) {
  Problem problem;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line.substr(0, 19), "id,lower,upper,size") << path;
  while (std::getline(file, line)) {
    long lower, upper, size;
    EXPECT_EQ(std::sscanf(line.c_str(), "%*[^,],%ld,%ld,%ld", &lower, &upper, &size), 3)
        << path << ": " << line;
    problem.buffers.push_back(Block(lower, upper, size));
  }
  return problem;
}

// Runs every solver on every file of the folder; returns the largest gap that the best one leaves.
double LargestGap(std::string_view folder) {
  double largest = 0;
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(getenv("REPRISE_BENCH")) / folder)) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    const Problem problem = ReadLifetimes(entry.path());
    EXPECT_TRUE(Validate(problem).ok()) << entry.path();
    double best = 1e9;
    std::printf("%-24s %6zu buffers ", entry.path().stem().c_str(), problem.buffers.size());
    for (std::string_view name : SolverNames()) {
      const auto solution = SolveWith(name, problem, {.seconds = 0});
      EXPECT_TRUE(solution.ok()) << name << solution.status();
      if (!solution.ok()) continue;
      EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok()) << entry.path() << name;
      best = std::min(best, Gap(solution->placement.slab, solution->lower_bound));
      std::printf(" %7.3f", 100 * Gap(solution->placement.slab, solution->lower_bound));
    }
    std::printf("  best %7.3f %%\n", 100 * best);
    largest = std::max(largest, best);
  }
  EXPECT_GT(files, 0);
  return largest;
}

class BenchData : public testing::Test {
 protected:
  void SetUp() override {
    if (getenv("REPRISE_BENCH") == nullptr)
      GTEST_SKIP() << "REPRISE_BENCH does not name the folder of the bench data";
  }
};

TEST_F(BenchData, LifetimesOfRealModels) { EXPECT_LT(LargestGap("lifetimes"), 0.0077); }

TEST_F(BenchData, HardSmallInstances) { EXPECT_LT(LargestGap("minimalloc"), 0.35); }

}  // namespace
}  // namespace reprise::planner
