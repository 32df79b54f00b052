// Two threads must find what the seed and the steps say, whichever of them is faster this time.
#include "planner/team.h"

#include <atomic>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "planner/portfolio.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

// Two blocks one after the other: the bound is 1.
const Instance& Small() {
  static const Instance instance = Compress({{Block(0, 1, 1), Block(1, 2, 1)}});
  return instance;
}

TEST(Team, KnowsAfterARoundWhatAnyHasFound) {
  Search first(Small(), 1, {.threads = 2});
  Team team(first);
  ASSERT_EQ(team.size(), 2);
  team.Round([&](int worker) {
    if (worker == 1) team.search(1).Offer(std::vector<int64_t>{0, 0}, "second");
  });
  EXPECT_EQ(first.best_slab(), 1);
  EXPECT_EQ(first.best_solver(), "second");
  EXPECT_EQ(&team.best(), &team.search(1));
  EXPECT_TRUE(team.best().Over());
}

TEST(Team, HasOneMemberWithOneThread) {
  Search first(Small(), 1, {});
  EXPECT_EQ(Team(first).size(), 1);
}

// The first worker has the answer after fewer steps, but the second has it earlier on the clock.
TEST(Team, TakesTheAnswerOfTheOneThatHasWorkedLess) {
  Search first(Small(), 1, {.threads = 2});
  first.Offer(std::vector<int64_t>{0, 7}, "before");
  Team team(first);
  std::atomic<bool> second_is_there = false;
  team.Round([&](int worker) {
    Search& search = team.search(worker);
    if (worker == 0) second_is_there.wait(false);
    EXPECT_FALSE(search.Stop(worker == 0 ? 10 : 20));
    search.Offer(std::vector<int64_t>{0, 0}, worker == 0 ? "first" : "second");
    if (worker == 1) {
      second_is_there = true;
      second_is_there.notify_one();
    }
  });
  EXPECT_EQ(team.best().best_solver(), "first");
}

// Once one has the answer, the other stops, but not before it has worked as much.
TEST(Team, StopsWhenAnotherHasTheAnswer) {
  Search first(Small(), 1, {.threads = 2});
  first.Offer(std::vector<int64_t>{0, 7}, "before");
  Team team(first);
  std::atomic<bool> first_is_there = false;
  int64_t worked = 0;
  team.Round([&](int worker) {
    Search& search = team.search(worker);
    if (worker == 0) {
      search.Stop(10);
      search.Offer(std::vector<int64_t>{0, 0}, "first");
      first_is_there = true;
      first_is_there.notify_one();
    } else {
      first_is_there.wait(false);
      do ++worked;
      while (!search.Stop(1));
    }
  });
  EXPECT_EQ(worked, 11);
  EXPECT_EQ(team.best().best_solver(), "first");
}

// Whichever of them runs out of memory, the process must live, all must be joined, and the team be of use
// again.
TEST(Team, ThrowsWhatAWorkerThrewOnceAllAreDone) {
  for (const int thrower : {0, 1, 2}) {  // 2 is both
    Search first(Small(), 1, {.threads = 2});
    Team team(first);
    std::atomic<int> began = 0;
    const auto round = [&] {
      team.Round([&](int worker) {
        ++began;
        if (thrower == worker || thrower == 2) throw std::bad_alloc();
      });
    };
    EXPECT_THROW(round(), std::bad_alloc);
    EXPECT_EQ(began, 2);
    team.Round([&](int worker) {
      if (worker == 1) team.search(1).Offer(std::vector<int64_t>{0, 0}, "second");
    });
    EXPECT_EQ(first.best_slab(), 1);
  }
}

TEST(Team, TellsWhatWasRefuted) {
  Search first(Small(), 1, {.threads = 2});
  first.Offer(std::vector<int64_t>{0, 7}, "before");
  Team team(first);
  team.Round([&](int worker) {
    if (worker == 1) team.search(1).Refute(4);
  });
  EXPECT_EQ(first.refuted(), 4);
  EXPECT_EQ(first.target(), 5);
}

TEST(Team, FindsTheSameEveryTime) {
  const Problem problem = RandomProblems(9).Make({.buffers = 300, .ticks = 200, .max_size = 1000});
  const Budget budget{.seconds = 1e9, .steps = 2'000'000, .threads = 2};
  const Solution once = *Solve(problem, budget);
  for (int i = 0; i < 5; ++i) {
    const Solution again = *Solve(problem, budget);
    EXPECT_EQ(again.placement.offsets, once.placement.offsets);
    EXPECT_EQ(again.solver, once.solver);
  }
}

}  // namespace
}  // namespace reprise::planner
