// Ranks on many machines solve one problem: it must be solved once, and a rank whose fellow has died, or has
// left nonsense, must get its plan all the same.
#include "replay/core/shared_solves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/plan_file.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/temp_folder.h"

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Three blocks of which two never live together.
planner::Problem Example(int64_t bytes = 4096) {
  planner::Problem problem;
  for (const auto& [lower, upper] : {std::pair(0, 9), std::pair(0, 4), std::pair(4, 9)}) {
    problem.buffers.push_back({.lower = Tick(lower), .upper = Tick(upper), .size = Bytes(bytes)});
  }
  return problem;
}

class SharedSolvesTest : public ::testing::Test {
 protected:
  std::string FileOf(const planner::Problem& problem, const std::string& end) const {
    return fmt::format("{}/{:016x}{}", folder_.path(), planner::Signature(problem), end);
  }
  void Write(const std::string& path, const std::string& text) const { std::ofstream(path) << text; }

  TempFolder folder_;
};

TEST_F(SharedSolvesTest, TheSecondTakesWhatTheFirstHasFound) {
  const planner::Problem problem = Example();
  SharedSolves first(folder_.path()), second(folder_.path());
  const auto solved = first.Solve(problem, {});
  const auto taken = second.Solve(problem, {});
  ASSERT_TRUE(solved.ok() && taken.ok());
  EXPECT_EQ(taken->placement.slab, Bytes(8192));
  EXPECT_EQ(taken->placement.offsets, solved->placement.offsets);
  EXPECT_EQ(taken->lower_bound, solved->lower_bound);
  EXPECT_EQ(taken->proven_optimal, solved->proven_optimal);
  EXPECT_TRUE(planner::CheckPlacement(problem, taken->placement).ok());
  EXPECT_EQ(first.solved() + 10 * first.taken(), 1);
  EXPECT_EQ(second.solved() + 10 * second.taken(), 10);
  EXPECT_FALSE(fs::exists(FileOf(problem, ".lease")));
}

TEST_F(SharedSolvesTest, ManyAtOnceSolveEachProblemOnce) {
  constexpr int kRanks = 16;
  std::vector<std::unique_ptr<SharedSolves>> ranks;
  for (int i = 0; i < kRanks; ++i) ranks.push_back(std::make_unique<SharedSolves>(folder_ / "deep/er"));
  std::vector<std::thread> threads;
  std::vector<int> right(kRanks);
  for (int i = 0; i < kRanks; ++i) {
    threads.emplace_back([&, i] {
      for (const int64_t bytes : {4096, 8192, 12288}) {
        const auto solution = ranks[i]->Solve(Example(bytes), {});
        right[i] += solution.ok() && solution->placement.slab == Bytes(2 * bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t solved = 0, taken = 0;
  for (const auto& rank : ranks) {
    solved += rank->solved();
    taken += rank->taken();
  }
  EXPECT_EQ(right, std::vector<int>(kRanks, 3));
  EXPECT_EQ(solved, 3);
  EXPECT_EQ(taken, 3 * kRanks - 3);
}

TEST_F(SharedSolvesTest, WhoeverHasWaitedInVainSolves) {
  const planner::Problem problem = Example();
  Write(FileOf(problem, ".lease"), "");  // of one that died a moment ago
  SharedSolves rank(folder_.path(), milliseconds(20));
  ASSERT_TRUE(rank.Solve(problem, {}).ok());
  EXPECT_EQ(rank.solved(), 1);
  EXPECT_TRUE(fs::exists(FileOf(problem, ".lease"))) << "it was not ours";
  SharedSolves later(folder_.path(), milliseconds(20));
  ASSERT_TRUE(later.Solve(problem, {}).ok());
  EXPECT_EQ(later.taken(), 1) << "nobody waits for a plan that is there";
}

TEST_F(SharedSolvesTest, AnOldLeaseIsNoReasonToWait) {
  const planner::Problem problem = Example();
  Write(FileOf(problem, ".lease"), "");
  fs::last_write_time(FileOf(problem, ".lease"), fs::file_time_type::clock::now() -
                                                     std::chrono::seconds(SharedSolves::kLeaseSeconds + 5));
  SharedSolves rank(folder_.path(), std::chrono::hours(1));
  ASSERT_TRUE(rank.Solve(problem, {}).ok());
  EXPECT_EQ(rank.solved(), 1);
  EXPECT_FALSE(fs::exists(FileOf(problem, ".lease")));
}

TEST_F(SharedSolvesTest, NothingInAFileIsTrusted) {
  const planner::Problem problem = Example();
  const auto own = planner::Solve(problem, {});
  ASSERT_TRUE(own.ok());
  planner::Solution overlapping = *own;
  overlapping.placement.offsets.assign(3, Offset(0));
  const auto other = planner::Solve(Example(64), {});
  ASSERT_TRUE(other.ok());
  for (const std::string& text :
       {std::string("no plan"), planner::FormatPlan(planner::MakePlan(problem, overlapping, {})),
        planner::FormatPlan(planner::MakePlan(Example(64), *other, {}))}) {
    Write(FileOf(problem, ".solved.json"), text);
    SharedSolves rank(folder_.path());
    const auto solution = rank.Solve(problem, {});
    ASSERT_TRUE(solution.ok());
    EXPECT_TRUE(planner::CheckPlacement(problem, solution->placement).ok());
    EXPECT_EQ(rank.solved(), 1) << text;
    SharedSolves next(folder_.path());
    ASSERT_TRUE(next.Solve(problem, {}).ok());
    EXPECT_EQ(next.taken(), 1) << "what was wrong has been replaced";
  }
}

TEST_F(SharedSolvesTest, WaitingEndsWhenPlanningIsToldTo) {
  const planner::Problem problem = Example();
  Write(FileOf(problem, ".lease"), "");
  const std::atomic<bool> cancel{true};
  planner::Budget budget;
  budget.cancel = &cancel;
  SharedSolves rank(folder_.path(), std::chrono::hours(1));
  EXPECT_TRUE(absl::IsCancelled(rank.Solve(problem, budget).status()));
}

TEST_F(SharedSolvesTest, WithoutAFolderItSolves) {
  Write(folder_ / "file", "");
  SharedSolves rank(folder_ / "file/below", std::chrono::hours(1));
  EXPECT_TRUE(rank.Solve(Example(), {}).ok());
  EXPECT_EQ(rank.solved(), 1);
  EXPECT_EQ(rank.lost(), 1);
}

}  // namespace
}  // namespace reprise::replay
