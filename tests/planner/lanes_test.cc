// Memory that goes from stream to stream costs an event, or is not allowed to: what the planner is asked for
// must be what comes out, and avoiding crossings must not be paid for with more slab than it is worth.
#include "planner/lanes.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/crossings.h"
#include "planner/portfolio.h"
#include "planner/problem.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

// Two lanes that take turns: sharing needs 4 bytes, apart they need 8.
Problem TakingTurns(Reuse reuse) {
  Problem problem{{OnLane(0, Block(0, 2, 4)), OnLane(1, Block(2, 4, 4)), OnLane(0, Block(4, 6, 4))}};
  problem.reuse = reuse;
  return problem;
}

TEST(Lanes, MayShareWhenReuseIsAllowed) {
  const auto solution = Solve(TakingTurns(Reuse::kAllowed), {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.slab, Bytes(4));
}

TEST(Lanes, ShareNothingWhenReuseIsForbidden) {
  const Problem problem = TakingTurns(Reuse::kForbidden);
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  EXPECT_EQ(solution->placement.slab, Bytes(8));
  EXPECT_EQ(solution->lower_bound, Bytes(8));
  EXPECT_TRUE(solution->proven_optimal);
}

TEST(Lanes, TheValidatorSeesWhenTheyShare) {
  const absl::Status status = CheckPlacement(TakingTurns(Reuse::kForbidden), At({0, 0, 0}, 4));
  EXPECT_EQ(
      status.message(),
      "buffer 0 (bytes [0, 4), ticks [0, 2)) of lane 0 and buffer 1 (bytes [0, 4), ticks [2, 4)) of lane 1 "
      "share bytes");
}

TEST(Lanes, APriceDecides) {
  Problem problem = TakingTurns(Reuse::kPriced);
  problem.crossing_price = Bytes(1);  // two crossings are cheaper than four bytes
  auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.slab, Bytes(4));
  EXPECT_EQ(solution->crossings, 2);
  problem.crossing_price = Bytes(3);
  solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.slab, Bytes(8));
  EXPECT_EQ(solution->crossings, 0);
}

// Half of the budget would go into what avoids crossings, of which there are none.
TEST(Lanes, OneAloneHasAllOfTheBudgetWhateverThePrice) {
  Problem problem = TakingTurns(Reuse::kPriced);
  problem.crossing_price = Bytes(1);
  for (Buffer& buffer : problem.buffers) buffer.lane = 3;
  problem.buffers.push_back(Pinned(0, 6, 4, 0));  // has no lane
  std::vector<double> shares;
  const SolveFunction solve = [&](const Problem& part, const Budget& share) {
    shares.push_back(share.seconds);
    return Solve(part, share);
  };
  const auto solution = SolvePriced(problem, {.seconds = 10}, solve);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(shares, std::vector<double>{10});
  EXPECT_EQ(solution->placement.slab, Bytes(8));
  EXPECT_TRUE(solution->proven_optimal);
}

// The load of these is 20, and only a search shows that 22 is the least.
TEST(Lanes, OneAloneIsApartFromNobody) {
  Problem problem{
      {Block(0, 1, 3, 2), Block(0, 1, 7, 5), Block(0, 1, 1, 6), Block(0, 1, 5, 5), Block(0, 1, 4, 8)}};
  problem.reuse = Reuse::kForbidden;
  const auto solution = Solve(problem, {.seconds = 3600});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->lower_bound, Bytes(22));
  EXPECT_TRUE(solution->proven_optimal);
  problem.buffers = {Pinned(0, 1, 3, 0)};
  EXPECT_NE(Solve(problem, {})->solver, "");
}

TEST(Lanes, CrossingsAreAvoidedWhereThatCostsNothing) {
  // One tall block sets the slab; below it there is room to keep the lanes apart.
  Problem problem = TakingTurns(Reuse::kPriced);
  problem.buffers.push_back(OnLane(0, Block(6, 7, 20)));
  problem.crossing_price = Bytes(1);
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  EXPECT_EQ(solution->placement.slab, Bytes(20));
  EXPECT_LE(solution->crossings, 1);
}

TEST(Lanes, WhatFitsGoesBeforeWhatIsCheaper) {
  Problem problem = TakingTurns(Reuse::kPriced);
  problem.crossing_price = Bytes(1000);
  problem.capacity = Bytes(6);  // 4 with two crossings, or 8 without any
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.slab, Bytes(4));
}

TEST(Lanes, APriceBeyondAllNumbersForbids) {
  Problem problem = TakingTurns(Reuse::kPriced);
  for (const int64_t price : {int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
    problem.crossing_price = Bytes(price);
    const auto solution = Solve(problem, {});
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_EQ(solution->crossings, 0);
  }
}

// Lays one on top of the other, in the order of the problem, from the top of the pinned ones on.
Solution Stacked(const Problem& problem) {
  Solution solution;
  Offset top(0);
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.pinned) top = std::max(top, *buffer.pinned + buffer.size);
  }
  for (const Buffer& buffer : problem.buffers) {
    const bool is_free = !buffer.pinned && !buffer.outside;
    solution.placement.offsets.push_back(is_free ? top : buffer.pinned.value_or(kOutside));
    if (is_free) top = top + buffer.size;
  }
  solution.placement.slab = top - Offset(0);
  solution.seconds = 1000;
  return solution;
}

TEST(Lanes, OnlyTheLastMayBeContentWithTheCapacity) {
  Problem problem = TakingTurns(Reuse::kForbidden);
  problem.capacity = Bytes(100);
  std::vector<std::optional<Bytes>> capacities;
  const auto solution = SolveApart(problem, {}, [&](const Problem& lane, const Budget&) {
    capacities.push_back(lane.capacity);
    return Stacked(lane);
  });
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(capacities, (std::vector<std::optional<Bytes>>{std::nullopt, Bytes(100)}));
}

// Where a lane stays where it was at a price, the next one may not fit any more.
TEST(Lanes, KeepNothingBelowTheLastAtTheCostOfTheCapacity) {
  Problem problem{{OnLane(0, Block(0, 1, 200)), OnLane(1, Block(0, 1, 100))}};
  problem.reuse = Reuse::kForbidden;
  problem.buffers[0].previous = Offset(2);
  problem.capacity = Bytes(300);
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.slab, Bytes(300));
}

TEST(Lanes, EachPaysForKeepingOnlyWhatItAdds) {
  Problem problem{{OnLane(0, Block(0, 1, 10'000)), OnLane(1, Block(0, 1, 1'000))}};
  problem.reuse = Reuse::kForbidden;
  problem.buffers[0].previous = Offset(100);
  problem.buffers[1].previous = Offset(10'200);  // a hole of 100 above a lane of 10,100
  const auto solution = Solve(problem, {});
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->placement.offsets[0], Offset(100));
  EXPECT_EQ(solution->placement.offsets[1], Offset(10'100));
}

TEST(Lanes, WhatALaneLeavesOfTheTimeIsForTheOthers) {
  std::vector<double> seconds;
  const auto solve = [&](const Problem& lane, const Budget& budget) {
    seconds.push_back(budget.seconds);
    return Stacked(lane);
  };
  const auto solution = SolveApart(TakingTurns(Reuse::kForbidden), {.seconds = 3000}, solve);
  ASSERT_TRUE(solution.ok()) << solution.status();
  ASSERT_EQ(seconds.size(), 2);
  EXPECT_NEAR(seconds[0], 2000, 100);
  EXPECT_NEAR(seconds[1], 3000, 100) << "the first took next to none";
  EXPECT_LT(solution->seconds, 100) << "what it took by the clock";
  EXPECT_LT(SolvePriced(TakingTurns(Reuse::kPriced), {}, solve)->seconds, 100);
}

// A solver that is told to stop after a number of calls, as `Solve` answers then.
class StoppedAfter {
 public:
  explicit StoppedAfter(int calls) : calls_(calls) {}

  absl::StatusOr<Solution> operator()(const Problem& problem, const Budget& budget) {
    if (made_++ == calls_) cancel_ = true;
    if (budget.cancel != nullptr && *budget.cancel) return absl::DeadlineExceededError("cancelled");
    return Stacked(problem);
  }
  Budget budget() const { return {.cancel = &cancel_}; }
  int calls() const { return made_; }  // how many there were

 private:
  const int calls_;
  int made_ = 0;
  std::atomic<bool> cancel_ = false;
};

TEST(Lanes, ACancelLeavesWhatIsLaid) {
  const Problem apart = TakingTurns(Reuse::kForbidden);
  StoppedAfter one(1);
  const auto second_is_late = SolveApart(apart, one.budget(), std::ref(one));
  ASSERT_TRUE(second_is_late.ok()) << second_is_late.status();
  EXPECT_TRUE(CheckPlacement(apart, second_is_late->placement).ok());
  EXPECT_EQ(one.calls(), 2) << "nobody is asked once more after a cancel";
  StoppedAfter none(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(SolveApart(apart, none.budget(), std::ref(none)).status()));

  const Problem priced = TakingTurns(Reuse::kPriced);
  StoppedAfter lowest(1);
  const auto without_apart = SolvePriced(priced, lowest.budget(), std::ref(lowest));
  ASSERT_TRUE(without_apart.ok()) << without_apart.status();
  EXPECT_TRUE(CheckPlacement(priced, without_apart->placement).ok());
}

TEST(Lanes, WhenMemoryRunsOutTheLowestIsAsGoodAsEver) {
  const Problem problem = TakingTurns(Reuse::kPriced);
  int calls = 0;
  const auto solve = [&](const Problem& part, const Budget&) {
    if (++calls > 1) throw std::bad_alloc();
    return Stacked(part);
  };
  const auto solution = SolvePriced(problem, {}, solve);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(solution->placement.offsets, Stacked(problem).placement.offsets);
  EXPECT_EQ(solution->crossings, CountCrossings(problem, solution->placement));
}

TEST(Lanes, LookAtTheirOwnBuffersAndWhatIsInTheWay) {
  Problem problem{
      {Pinned(0, 9, 3, 0), Pinned(9, 10, 2, 1000)}};  // soon below the lanes laid; ever above them
  for (int i = 0; i < 40; ++i) problem.buffers.push_back(OnLane(i % 10, Block(0, 4, 1)));
  problem.reuse = Reuse::kForbidden;
  std::vector<size_t> buffers;
  const auto solution = SolveApart(problem, {}, [&](const Problem& lane, const Budget& budget) {
    buffers.push_back(lane.buffers.size());
    return Solve(lane, budget);
  });
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  std::vector<size_t> expected(10, 4 + 1 + 1);  // its own, the obstacle above and the floor
  EXPECT_EQ(buffers, expected) << "the first has the obstacle that is the floor";
}

// By turns of `round` with each feature and without; fewer than `buffers` + 2, at most `lanes`.
Problem OfAllKinds(RandomProblems& random, int round, int buffers, int lanes) {
  return random.Make({.buffers = 2 + static_cast<int>(random.Below(buffers)),
                      .ticks = 20,
                      .max_size = 50,
                      .cyclic = round % 2 == 1,
                      .aligned = round % 3 == 1,
                      .pinned = round % 5 == 1 ? 3 : 0,
                      .gaps = round % 7 == 1,
                      .outside = round % 4 == 1,
                      .lanes = 1 + static_cast<int32_t>(random.Below(lanes))});
}

// However many there are: a first answer of each for itself takes far longer than the time.
TEST(Lanes, AreLaidAtOnceAsSoonAsTheTimeIsOver) {
  RandomProblems random(43);
  for (int round = 0; round < 300; ++round) {
    Problem problem = OfAllKinds(random, round, 60, 9);
    problem.reuse = Reuse::kForbidden;
    int calls = 0;
    const auto solve = [&](const Problem& lane, const Budget& budget) {
      ++calls;
      return Solve(lane, budget);
    };
    const auto solution = SolveApart(problem, {.seconds = 0}, solve);
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_LE(calls, 1);
    const absl::Status valid = CheckPlacement(problem, solution->placement);
    ASSERT_TRUE(valid.ok()) << round << valid;
    EXPECT_EQ(CountCrossings(problem, solution->placement), 0);
  }
}

TEST(Lanes, WorkTheStepsOfAllAndSayHowMany) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - 1;
  int64_t granted = 0;
  int calls = 0;
  const auto solve = [&](const Problem& part, const Budget& budget) {
    granted = budget.steps;
    Solution solution = Stacked(part);
    solution.steps = ++calls;
    return solution;
  };
  ASSERT_TRUE(SolveApart({{Block(0, 1, 4)}}, {.steps = kMost}, solve).ok());
  EXPECT_EQ(granted, kMost) << "one lane has all";
  calls = 0;
  EXPECT_EQ(SolveApart(TakingTurns(Reuse::kForbidden), {}, solve)->steps, 1 + 2);
  calls = 0;
  EXPECT_GT(SolvePriced(TakingTurns(Reuse::kPriced), {}, solve)->steps, 1 + 2 + 3) << "avoiding is work too";
}

TEST(Lanes, ACancelAfterTheLowestLeavesOutWhatAvoidsCrossings) {
  Problem problem;
  for (int i = 0; i < 1000; ++i) problem.buffers.push_back(OnLane(i % 2, Block(i, i + 2, 4)));
  problem.reuse = Reuse::kPriced;
  problem.crossing_price = Bytes(1);
  std::atomic<bool> cancel = false;
  const auto solve = [&](const Problem& part, const Budget&) {
    cancel = true;
    return Stacked(part);
  };
  const auto solution = SolvePriced(problem, {.cancel = &cancel}, solve);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_NE(solution->solver, "first-fit-avoiding");
  const auto in_time =
      SolvePriced(problem, {}, [](const Problem& part, const Budget&) { return Stacked(part); });
  EXPECT_EQ(in_time->solver, "first-fit-avoiding") << "which has the least cost here";
}

// What would end above the limit goes where it first fits: how far up nobody else has been is of no interest.
TEST(Lanes, LookForNoPlaceAboveTheLimit) {
  constexpr int kLanes = 100;
  Problem problem;  // from the second lane on there is room only where others have been, or above the limit
  for (int i = 0; i < 10 * kLanes; ++i) problem.buffers.push_back(OnLane(i % kLanes, Block(i, i + 1, 4)));
  problem.reuse = Reuse::kPriced;
  problem.crossing_price = Bytes(1);
  const auto solve = [](const Problem& part, const Budget&) {
    Solution solution = Stacked(part);
    for (Offset& offset : solution.placement.offsets) offset = Offset(0);
    solution.placement.slab = Bytes(4);
    return solution;
  };
  const auto solution = SolvePriced(problem, {.seconds = 1000}, solve);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_LT(solution->steps, 8 * 10 * kLanes * 10) << "a few lists for each limit and buffer, not all lanes";
}

// What a lane's own problem has besides the lane, others outside and a floor, must not make it too high.
TEST(Lanes, WhatFitsAnOffsetTogetherFitsLaneByLane) {
  Problem problem{{OnLane(1, Block(7, 8, 567607731548766705, 26730988437608282)),
                   OnLane(0, Block(2, 4, 264735920985504620, 476634854311257523))},
                  8};
  problem.crossing_price = Bytes(1);
  ASSERT_TRUE(Validate(problem).ok());
  for (const Reuse reuse : {Reuse::kForbidden, Reuse::kPriced}) {
    problem.reuse = reuse;
    const auto solution = Solve(problem, {});
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_TRUE(CheckPlacement(problem, solution->placement).ok());
  }
}

TEST(Lanes, RandomProblems) {
  RandomProblems random(41);
  for (int round = 0; round < 300; ++round) {
    Problem problem = OfAllKinds(random, round, 30, 4);
    ASSERT_TRUE(Validate(problem).ok());
    Bytes shared;
    int64_t crossings = 0;
    for (Reuse reuse : {Reuse::kAllowed, Reuse::kPriced, Reuse::kForbidden}) {
      problem.reuse = reuse;
      problem.crossing_price = Bytes(random.Below(40));
      const auto solution = Solve(problem, {.steps = 20000});
      ASSERT_TRUE(solution.ok()) << solution.status();
      ASSERT_TRUE(CheckPlacement(problem, solution->placement).ok())
          << round << CheckPlacement(problem, solution->placement);
      ASSERT_GE(solution->placement.slab, solution->lower_bound);
      if (reuse == Reuse::kAllowed) {
        shared = solution->placement.slab;
        crossings = CountCrossings(problem, solution->placement);
      }
      if (reuse == Reuse::kPriced) {
        EXPECT_EQ(solution->crossings, CountCrossings(problem, solution->placement));
        EXPECT_LE(solution->crossings, std::max<int64_t>(crossings, 1) * 4) << "priced, yet it crosses more";
      }
      if (reuse == Reuse::kForbidden) {
        EXPECT_EQ(CountCrossings(problem, solution->placement), 0);
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
