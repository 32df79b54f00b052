// Ejection must find dense placements that no order of first-fit leads to, never move what is pinned, and
// repeat itself.
#include "planner/eject.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/improve.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

// `rows` rings of 1 to 8 bytes, each cut into a few blocks that leave little of it unused: the rings on top
// of each other are a placement.
Problem CutRings(int rows, int64_t period, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Problem problem;
  problem.period = period;
  for (int row = 0; row < rows; ++row) {
    const int64_t bytes = 1 + below(8);
    const int64_t first = below(period);
    for (int64_t at = 0; at < period;) {
      const int64_t left = period - at;
      const int64_t length = left < period / 4 ? left : period / 8 + below(left - period / 8);
      const int64_t unused = below(period / 16);
      const int64_t begin = (first + at) % period;
      if (length > unused) problem.buffers.push_back(Block(begin, begin + length - unused, bytes));
      at += length;
    }
  }
  return problem;
}

int64_t LoadAt(const Problem& problem, int64_t tick) {
  int64_t load = 0;
  for (const Buffer& buffer : problem.buffers) {
    const int64_t after = (tick - buffer.lower.count() + *problem.period) % *problem.period;
    if (after < buffer.upper - buffer.lower) load += buffer.size.count();
  }
  return load;
}

int64_t Reached(const Problem& problem, Turn (*begin)(Search&, std::string_view), int64_t steps) {
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), {.seconds = 3600, .steps = steps});
  const Turn turn = begin(search, "tested");
  while (!search.Over() && turn()) {
  }
  Placement placement;
  for (int64_t offset : search.best()) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(search.best_slab());
  EXPECT_TRUE(CheckPlacement(problem, placement).ok()) << CheckPlacement(problem, placement);
  return search.best_slab();
}

TEST(Eject, FindsOnARingWhatNoOrderLeadsTo) {
  int64_t ejected = 0, improved = 0, bound = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Problem problem = CutRings(100, 200, seed);
    bound += LowerBound(problem).count();
    ejected += Reached(problem, BeginEject, 2'000'000);
    improved += Reached(problem, BeginImprove, 2'000'000);
  }
  EXPECT_LT(ejected - bound, (improved - bound) * 4 / 5) << "of " << improved - bound << " above " << bound;
}

TEST(Eject, FindsRoomForWhatLivesForAMoment) {
  // These fill some moments up to nearly the load that there is elsewhere: where first-fit finds no room for
  // one between the others, these have to move.
  int64_t without = 0, with = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Problem problem = CutRings(100, 200, seed);
    const int64_t slab = Reached(problem, BeginEject, 2'000'000);
    for (const int64_t tick : {20, 70, 120, 170}) {
      for (int64_t room = slab * 97 / 100 - LoadAt(problem, tick); room >= 4; room -= 4) {
        problem.buffers.push_back(Block(tick, tick + 1, 4));
      }
    }
    without += slab;
    with += Reached(problem, BeginEject, 2'000'000);
  }
  EXPECT_LE(with, without + without / 300);
}

TEST(Eject, LeavesWhatIsPinned) {
  Problem problem = CutRings(40, 100, 3);
  problem.buffers[7].pinned = Offset(50);
  problem.buffers[30].pinned = Offset(3);
  const int64_t first = Reached(problem, BeginEject, 0);
  EXPECT_LT(Reached(problem, BeginEject, 1'000'000), first);
}

TEST(Eject, RepeatsItselfHoweverItsTurnsAreCut) {
  const Instance instance = Compress(CutRings(30, 100, 4));
  std::vector<std::vector<int64_t>> runs;
  for (const int64_t grant : {int64_t{2000}, Search::kNothing}) {
    Search search(instance, 0, {.seconds = 3600});  // until it has nothing more to try
    const Turn turn = BeginEject(search, "eject");
    do {
      search.Grant(grant);
    } while (turn());
    runs.push_back(search.best());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// Sizes over three orders of magnitude, few of them large; a thirtieth of all is in use at a time.
Problem SkewedLine(int buffers, uint64_t seed) {
  RandomProblems random(seed);
  Problem line;
  for (int i = 0; i < buffers; ++i) {
    const int64_t lower = random.Below(1000);
    const int64_t octave = std::min({random.Below(10), random.Below(10), random.Below(10)});
    line.buffers.push_back(
        Block(lower, lower + 1 + random.Below(64), (1 << octave) * (1000 + random.Below(1000))));
  }
  return line;
}

TEST(Eject, ComesCloserToTheBoundOnADenseLineThanTheHybridAlone) {
  int64_t without = 0, with = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Problem line = SkewedLine(4000, seed);  // too many for the exact search
    Budget budget{.seconds = 3600, .steps = 20'000'000};
    budget.rules.SwitchOff("best-fit");
    budget.rules.SwitchOff("best-fit-large");
    const auto all = Solve(line, budget);
    budget.rules.SwitchOff("eject");
    const auto others = Solve(line, budget);
    ASSERT_TRUE(all.ok() && others.ok());
    with += (all->placement.slab - all->lower_bound).count();
    without += (others->placement.slab - others->lower_bound).count();
  }
  EXPECT_LT(2 * with, without);
}

}  // namespace
}  // namespace reprise::planner
