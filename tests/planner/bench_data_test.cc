// Lifetimes of real models and the hard instances of MiniMalloc, where random problems look harmless: every
// solver's placement is checked, and what all of them reach with a budget of steps, which is the same on
// every machine, must stay as good as it was. Needs the folder that REPRISE_BENCH names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

std::vector<std::filesystem::path> FilesIn(std::string_view folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(getenv("REPRISE_BENCH")) / folder)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  EXPECT_FALSE(files.empty());
  return files;
}

void EverySolverPassesTheValidator(std::string_view folder) {
  for (const auto& path : FilesIn(folder)) {
    const Problem problem = ReadLifetimes(path);
    EXPECT_TRUE(Validate(problem).ok()) << path;
    for (std::string_view name : SolverNames()) {
      const auto solution = SolveWith(name, problem, {.seconds = 0});
      if (absl::IsUnimplemented(solution.status())) continue;
      ASSERT_TRUE(solution.ok()) << name << solution.status();
      EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok()) << path << name;
    }
  }
}

// The gap after so many steps, with the placement checked.
double GapAfter(int64_t steps, const Problem& problem) {
  const auto solution = Solve(problem, {.seconds = 3600, .steps = steps, .threads = 2});
  EXPECT_TRUE(solution.ok()) << solution.status();
  if (!solution.ok()) return 1;
  EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  return Gap(solution->placement.slab, solution->lower_bound);
}

class BenchData : public testing::Test {
 protected:
  void SetUp() override {
    if (getenv("REPRISE_BENCH") == nullptr)
      GTEST_SKIP() << "REPRISE_BENCH does not name the folder of the bench data";
  }
};

TEST_F(BenchData, EverySolverOnRealModels) { EverySolverPassesTheValidator("lifetimes"); }

TEST_F(BenchData, EverySolverOnHardSmallInstances) { EverySolverPassesTheValidator("minimalloc"); }

TEST_F(BenchData, RealModelsReachTheBound) {
  for (const auto& path : FilesIn("lifetimes")) {
    const double gap = GapAfter(10'000'000, ReadLifetimes(path));
    EXPECT_EQ(gap, 0) << path;
  }
}

TEST_F(BenchData, HardSmallInstancesFitTheirCapacity) {
  for (const auto& path : FilesIn("minimalloc")) {
    const int64_t capacity = std::atoll(path.stem().extension().c_str() + 1);
    Problem problem = ReadLifetimes(path);
    problem.capacity = Bytes(capacity);
    const auto solution = Solve(problem, {.seconds = 3600, .steps = 125'000'000, .threads = 2});
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok()) << path;
    EXPECT_LE(solution->placement.slab, *problem.capacity) << path;
    std::printf("%-24s %12ld steps\n", path.stem().c_str(), static_cast<long>(solution->steps));
  }
}

}  // namespace
}  // namespace reprise::planner
