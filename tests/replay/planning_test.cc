// Why: here an iteration becomes a problem. What is left out, how sizes round and where obstacles lie decides
// what is served later.
#include "replay/planning.h"

#include <gtest/gtest.h>

#include <new>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "replay/ranges.h"
#include "replay/stream_order.h"

namespace reprise::replay {
namespace {

profiler::Iteration ThreeSlots() {
  profiler::Iteration iteration;
  iteration.period = 3;
  iteration.slots = {
      {.bytes = Bytes(5000), .alignment = Bytes(64), .stream = Stream{0}, .begin = 0, .length = 2},
      {.bytes = Bytes(8192), .alignment = Bytes(4096), .stream = Stream{0}, .begin = 1, .length = 1},
      {.bytes = Bytes(4096), .alignment = Bytes(1), .stream = Stream{0}, .begin = 2, .length = 3},
  };
  return iteration;
}

TEST(MakeRequest, SlotsBecomeCyclicBuffersInUnits) {
  const PlanRequest request = MakeRequest(ThreeSlots(), {});
  ASSERT_EQ(request.problem.buffers.size(), 3u);
  EXPECT_EQ(request.problem.period, 3);
  EXPECT_EQ(request.problem.buffers[0].size, Bytes(5120));
  EXPECT_EQ(request.problem.buffers[0].alignment, kUnit);
  EXPECT_EQ(request.problem.buffers[1].alignment, Bytes(4096));
  EXPECT_EQ(request.problem.buffers[2].lower, Tick(2));
  EXPECT_EQ(request.problem.buffers[2].upper, Tick(5)) << "runs past the period: wraps";
}

TEST(MakeRequest, ADevicesBuffersAreMultiplesOfTheirAlignment) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[2].bytes = kUnit * 17;
  EXPECT_EQ(MakeRequest(iteration, {}).problem.buffers[2].size, kUnit * 17);
  iteration.slots[2].alignment = Bytes(512);
  EXPECT_EQ(MakeRequest(iteration, {}).problem.buffers[2].size, kUnit * 18);
}

TEST(MakeRequest, PersistentSlotsStayOutside) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[0].persistent = true;
  const PlanRequest request = MakeRequest(iteration, {});
  EXPECT_EQ(request.slot_of, (std::vector<uint32_t>{1, 2}));
}

TEST(MakeRequest, TheCycleIsAsManyRoundsAsTheLongestBlockLivesFor) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[0].persistent = true;
  iteration.slots[2].length = 7;
  const PlanRequest request = MakeRequest(iteration, {{.offset = Offset(512), .bytes = Bytes(1024)}});
  EXPECT_EQ(request.problem.period, 9);
  EXPECT_EQ(request.iteration.period, 9);
  EXPECT_EQ(request.iteration.slots.size(), 9u);
  EXPECT_EQ(request.slot_of, (std::vector<uint32_t>{1, 2, 4, 5, 7, 8}));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(request.problem.buffers[i].lower, Tick(request.slot_of[i]));
    EXPECT_EQ(request.problem.buffers[i].upper - request.problem.buffers[i].lower, i % 2 == 0 ? 1 : 7);
  }
  EXPECT_EQ(request.problem.buffers[6].upper, Tick(9)) << "the obstacle is there throughout";
}

// Of `two` bytes that live for two rounds and `three` that live for three.
int64_t RoundsWith(int64_t two, int64_t three) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[0].length = 4;
  iteration.slots[0].bytes = Bytes(two);
  iteration.slots[2].length = 7;
  iteration.slots[2].bytes = Bytes(three);
  return MakeRequest(iteration, {}).iteration.period / 3;
}

TEST(MakeRequest, TheCycleIsAsManyRoundsAsNeedTheFewestPlaces) {
  EXPECT_EQ(RoundsWith(1 << 30, 1 << 20), 4) << "in three, each of two rounds would need three places";
  EXPECT_EQ(RoundsWith(1 << 20, 1 << 30), 3) << "in four, each of three rounds would need four";
  EXPECT_EQ(RoundsWith(1 << 30, 1 << 30), 6);
}

TEST(KeepPlaces, OfAPlanOfTheSameCycle) {
  ServingPlan had;
  had.slots = {{.bytes = Bytes(5000), .offset = Offset(1 << 20)},
               {.bytes = Bytes(8192), .offset = Offset(-1)},
               {.bytes = Bytes(4097), .offset = Offset(0)}};
  PlanRequest request = MakeRequest(ThreeSlots(), {{.offset = Offset(0), .bytes = Bytes(1024)}});
  KeepPlaces(had, request);
  EXPECT_EQ(request.problem.buffers[0].previous, Offset(1 << 20));
  EXPECT_EQ(request.problem.buffers[1].previous, std::nullopt) << "it had no place";
  EXPECT_EQ(request.problem.buffers[2].previous, std::nullopt) << "it is another block";
  EXPECT_EQ(request.problem.buffers[3].previous, std::nullopt) << "the obstacle";
}

TEST(KeepPlaces, OfWhereItLiesForGoodNotInItsFirstCycle) {
  ServingPlan had;
  had.slots = {{.bytes = Bytes(5000), .offset = Offset(1 << 20)},
               {.bytes = Bytes(8192), .offset = Offset(0)},
               {.bytes = Bytes(4096), .offset = Offset(2 << 20)}};
  had.later = had.slots;
  had.later[0].offset = Offset(3 << 20);
  PlanRequest request = MakeRequest(ThreeSlots(), {});
  KeepPlaces(had, request);
  EXPECT_EQ(request.problem.buffers[0].previous, Offset(3 << 20));
}

TEST(KeepPlaces, NotOfAnotherCycle) {
  ServingPlan had;
  had.slots = {{.bytes = Bytes(5000), .offset = Offset(1 << 20)}};
  PlanRequest request = MakeRequest(ThreeSlots(), {});
  KeepPlaces(had, request);
  EXPECT_EQ(request.problem.buffers[0].previous, std::nullopt);
}

// A plan of this cycle, its entries marked.
ServingPlan WithEntries(std::vector<profiler::Slot> cycle) {
  ServingPlan plan;
  for (const profiler::Slot& slot : cycle) plan.slots.push_back({.bytes = slot.bytes, .stream = slot.stream});
  plan.cycle = std::move(cycle);
  MarkEntries(plan);
  return plan;
}

// So many different slots, of which none is live before the next.
std::vector<profiler::Slot> NothingLive(int64_t slots) {
  std::vector<profiler::Slot> cycle;
  for (int64_t i = 0; i < slots; ++i) cycle.push_back({.bytes = Bytes(100 + i), .length = 1});
  return cycle;
}

// Of a cycle of 14 slots of which nothing is live, but for one of another kind: the entries among the last five. Where it
// has just begun all are.
std::vector<bool> LateEntries(size_t slot, profiler::Slot other) {
  std::vector<profiler::Slot> cycle = NothingLive(14);
  cycle[slot] = other;
  const ServingPlan plan = WithEntries(std::move(cycle));
  for (size_t i = 0; i <= 8; ++i) EXPECT_TRUE(plan.slots[i].entry);
  std::vector<bool> late;
  for (size_t i = 9; i < plan.slots.size(); ++i) late.push_back(plan.slots[i].entry);
  return late;
}

TEST(MarkEntries, AreWhereLittleIsLive) {
  const std::vector<bool> late = {false, false, false, true, true};
  EXPECT_EQ(LateEntries(8, {.bytes = Bytes(7000), .length = 4}), late);
  EXPECT_EQ(LateEntries(8, {.bytes = Bytes(7000), .length = 18}), late) << "and once more all of the time";
}

TEST(MarkEntries, WhatIsLiveBeyondTheCutCountsBehindIt) {
  EXPECT_EQ(LateEntries(12, {.bytes = Bytes(7000), .length = 12}),
            std::vector<bool>({false, true, true, true, false}));
}

TEST(MarkEntries, WhatStaysIsNotOfTheCycle) {
  EXPECT_EQ(LateEntries(9, {.bytes = Bytes(7000), .length = 3, .persistent = true}),
            std::vector<bool>({true, true, true, true, true}));
}

TEST(MarkEntries, AnEighthOfTheSwingIsLittle) {
  std::vector<profiler::Slot> cycle = NothingLive(14);
  cycle[8] = {.bytes = Bytes(8000), .length = 3};
  cycle[10] = {.bytes = Bytes(1000), .length = 2};
  cycle[11] = {.bytes = Bytes(1001), .length = 2};
  const ServingPlan plan = WithEntries(std::move(cycle));
  EXPECT_EQ(plan.swing, Bytes(8000));
  EXPECT_FALSE(plan.slots[9].entry);
  EXPECT_TRUE(plan.slots[11].entry);
  EXPECT_FALSE(plan.slots[12].entry);
  EXPECT_TRUE(plan.slots[13].entry);
}

TEST(MarkEntries, EachOfSeveralRoundsBeginsWithSome) {
  std::vector<profiler::Slot> round = NothingLive(100);
  round[0] = {.bytes = Bytes(8000), .length = 190};
  std::vector<profiler::Slot> cycle = round;
  cycle.insert(cycle.end(), round.begin(), round.end());
  const ServingPlan plan = WithEntries(std::move(cycle));
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(plan.slots[i].entry, i % 100 <= 10 || i % 100 >= 90) << i;
}

TEST(MakeRequest, ABlockFreedBeforeTheNextTokenStillLives) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[1].length = 0;
  const PlanRequest request = MakeRequest(iteration, {});
  EXPECT_EQ(request.problem.buffers[1].upper, Tick(2));
}

TEST(MakeRequest, BlocksWithoutAStreamShareNothingWithTheOthers) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[1].stream = kEveryStream;
  const planner::Problem problem = MakeRequest(iteration, {}).problem;
  EXPECT_EQ(problem.reuse, planner::Reuse::kForbidden);
  EXPECT_EQ(problem.buffers[0].lane, problem.buffers[2].lane);
  EXPECT_NE(problem.buffers[0].lane, problem.buffers[1].lane);
}

TEST(MakeRequest, ObstaclesArePinnedForTheWholeCycle) {
  const PlanRequest request = MakeRequest(ThreeSlots(), {{.offset = Offset(512), .bytes = Bytes(1024)}});
  ASSERT_EQ(request.problem.buffers.size(), 4u);
  ASSERT_EQ(request.slot_of.size(), 3u);
  EXPECT_EQ(request.problem.buffers[3].pinned, Offset(512));
  EXPECT_EQ(request.problem.buffers[3].size, Bytes(1024));
  EXPECT_EQ(request.problem.buffers[3].upper - request.problem.buffers[3].lower, 3);
}

TEST(Plan, LaysBlocksWithoutAStreamApart) {
  profiler::Iteration iteration = ThreeSlots();
  for (profiler::Slot& slot : iteration.slots) slot.length = 1;  // alone they would share one place
  iteration.slots[1].stream = kEveryStream;
  Candidate candidate;
  Plan(MakeRequest(iteration, {{.offset = Offset(0), .bytes = Bytes(1024)}}), 1.0, candidate);
  ASSERT_TRUE(candidate.status.ok()) << candidate.status;
  const auto& slots = candidate.plan.slots;
  for (const int other : {0, 2}) {
    EXPECT_TRUE(slots[1].offset >= slots[other].offset + slots[other].bytes ||
                slots[other].offset >= slots[1].offset + slots[1].bytes);
  }
  EXPECT_GE(candidate.plan.end, slots[0].offset + slots[0].bytes);
}

TEST(Plan, FillsTheCandidateAroundObstacles) {
  Candidate candidate;
  Plan(MakeRequest(ThreeSlots(), {{.offset = Offset(0), .bytes = Bytes(4096)}}), 1.0, candidate);
  ASSERT_TRUE(candidate.ready);
  ASSERT_TRUE(candidate.status.ok()) << candidate.status;
  ASSERT_EQ(candidate.plan.slots.size(), 3u);
  for (const ServingPlan::Slot& slot : candidate.plan.slots) EXPECT_GE(slot.offset, Offset(4096));
  EXPECT_GE(candidate.plan.end, Offset(4096 + 5120 + 8192));
  EXPECT_NE(candidate.matcher, nullptr);
}

TEST(Plan, LeavesUnplannedSlotsWithoutAnOffset) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[1].persistent = true;
  Candidate candidate;
  Plan(MakeRequest(iteration, {}), 1.0, candidate);
  ASSERT_TRUE(candidate.status.ok()) << candidate.status;
  EXPECT_TRUE(candidate.plan.slots[0].planned());
  EXPECT_FALSE(candidate.plan.slots[1].planned());
}

TEST(Plan, GivesEachInstanceOfABlockThatOutlivesItsRoundAPlace) {
  profiler::Iteration iteration = ThreeSlots();
  iteration.slots[1].length = 5;
  Candidate candidate;
  Plan(MakeRequest(iteration, {}), 1.0, candidate);
  ASSERT_TRUE(candidate.status.ok()) << candidate.status;
  ASSERT_EQ(candidate.plan.slots.size(), 6u);
  EXPECT_EQ(candidate.plan.cycle.size(), 6u);
  const Offset first = candidate.plan.slots[1].offset, second = candidate.plan.slots[4].offset;
  EXPECT_TRUE(first + Bytes(8192) <= second || second + Bytes(8192) <= first);
}

TEST(Plan, TakesTimeInProportionToItsBlocks) {
  double granted = 0;
  const Solver solve = [&](const planner::Problem&,
                           const planner::Budget& budget) -> absl::StatusOr<planner::Solution> {
    granted = budget.seconds;
    EXPECT_DOUBLE_EQ(static_cast<double>(budget.steps), 3e8 * granted) << "whatever the clock says";
    return absl::CancelledError("");
  };
  const auto seconds = [&](int64_t blocks, double most) {
    profiler::Iteration iteration;
    iteration.period = blocks;
    for (int64_t i = 0; i < blocks; ++i)
      iteration.slots.push_back({.bytes = Bytes(4096), .stream = Stream{0}, .begin = i, .length = 1});
    Candidate candidate;
    Plan(MakeRequest(iteration, {}), most, candidate, solve);
    return granted;
  };
  EXPECT_DOUBLE_EQ(seconds(3, 1.0), 0.05) << "however few they are";
  EXPECT_DOUBLE_EQ(seconds(4000, 1.0), 0.2);
  EXPECT_DOUBLE_EQ(seconds(4000, 0.1), 0.1) << "no more than it may take";
}

// A block of another stream's, from slot 24 to 40, between two of the main stream's that end and begin so many slots away.
profiler::Iteration OtherStreamAmongMain(int64_t away, int64_t mib_beside) {
  profiler::Iteration iteration{.period = 64};
  for (int64_t i = 0; i < 64; ++i)
    iteration.slots.push_back({.bytes = kUnit, .alignment = Bytes(1), .begin = i, .length = 1});
  const auto set = [&](int64_t at, int64_t end, int64_t mib) -> profiler::Slot& {
    profiler::Slot& slot = iteration.slots[static_cast<size_t>(at)];
    slot.bytes = Bytes(mib << 20);
    slot.length = end - at;
    return slot;
  };
  set(0, 64, mib_beside);
  set(4, 24 - away, 1);
  set(40 + away, 63, 1);
  set(24, 40, 1).stream = Stream{1};
  iteration.slots[24].freed_on = Stream{1};
  return iteration;
}

// What was solved for it: the lifetimes of that block.
std::vector<std::pair<int64_t, int64_t>> LifetimesSolvedFor(const profiler::Iteration& iteration,
                                                            bool keeps_lag = true, Bytes too_high = Bytes(0),
                                                            Bytes most_to_be_had = Bytes(INT64_MAX)) {
  std::vector<std::pair<int64_t, int64_t>> lifetimes;
  const Solver solve = [&](const planner::Problem& problem, const planner::Budget& budget) {
    const planner::Buffer& block = problem.buffers[24];
    lifetimes.emplace_back(block.lower.count(), block.upper.count());
    auto solution = planner::Solve(problem, budget);
    if (block.lower != Tick(24)) solution->placement.slab += too_high;
    return solution;
  };
  PlanRequest request = MakeRequest(iteration, {});
  request.keeps_lag = keeps_lag;
  request.most_to_be_had = most_to_be_had;
  Candidate candidate;
  Plan(request, 1.0, candidate, solve);
  EXPECT_TRUE(candidate.status.ok()) << candidate.status;
  EXPECT_EQ(candidate.plan.lower_bound, planner::LowerBound(request.problem)) << "whatever is kept free";
  return lifetimes;
}

TEST(Plan, KeepsAsMuchLagBetweenStreamsAsIsWorthItsMemory) {
  using Lifetimes = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(8, 2)), (Lifetimes{{16, 48}}))
      << "half of its life costs nothing";
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(1, 4)), (Lifetimes{{16, 48}})) << "a fifth";
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(5, 2)), (Lifetimes{{19, 45}}))
      << "a third of the height is too much; a third of its life";
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(3, 2)), (Lifetimes{{22, 42}}));
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(1, 2)), (Lifetimes{{24, 40}})) << "none";
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(8, 2), false), (Lifetimes{{24, 40}}))
      << "the rule is off";
  // Where the placement is higher than the load, it is that which counts.
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(8, 2), true, Bytes(1 << 20)),
            (Lifetimes{{16, 48}, {19, 45}, {20, 44}, {22, 42}, {22, 42}, {24, 40}}));
}

TEST(Plan, KeepsNoMoreLagThanThereIsMemoryFor) {
  using Lifetimes = std::vector<std::pair<int64_t, int64_t>>;
  const Bytes enough((10 << 20) + (10 << 20) / 64 + 8192);  // for 8 MiB, the block, another and a little
  const Bytes less = enough - Bytes(1 << 16);
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(5, 8), true, Bytes(0), enough), (Lifetimes{{16, 48}}));
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(5, 8), true, Bytes(0), less), (Lifetimes{{19, 45}}));
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(1, 8), true, Bytes(0), less), (Lifetimes{{24, 40}}));
  EXPECT_EQ(LifetimesSolvedFor(OtherStreamAmongMain(8, 8), true, Bytes(0), Bytes(8 << 20)),
            (Lifetimes{{24, 40}}))
      << "the job needs more than there was at some time";
}

// Two streams by turns, each with so many MiB, and beside them a third that is in step with one.
TEST(Plan, WhereStreamsApartTakeTooMuchThoseInStepDoNotWaitForOneAnother) {
  const auto solved = [](int64_t mib) {
    profiler::Iteration iteration = OtherStreamAmongMain(8, 4);
    for (int64_t i = 0; i < 20; ++i) {
      iteration.slots.push_back({.bytes = Bytes(mib << 20),
                                 .alignment = Bytes(1),
                                 .stream = Stream{2},
                                 .begin = 64 + i,
                                 .length = 1,
                                 .freed_on = Stream{2}});
    }
    iteration.period = 84;
    iteration.slots[0].length = 64;
    std::vector<std::pair<int64_t, int32_t>> tries;
    PlanRequest request = MakeRequest(iteration, {});
    Candidate candidate;
    Plan(request, 1.0, candidate, [&](const planner::Problem& problem, const planner::Budget& budget) {
      tries.emplace_back(problem.buffers[24].lower.count(), problem.buffers[70].lane);
      return planner::Solve(problem, budget);
    });
    EXPECT_TRUE(candidate.status.ok()) << candidate.status;
    return tries;
  };
  const auto apart = solved(1);
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_NE(apart[0].second, 0);
  EXPECT_EQ(solved(4), (std::vector<std::pair<int64_t, int32_t>>{{16, 0}}));
}

// On the planner's thread, where nobody would catch it.
TEST(Plan, WithoutMemoryIsAFailureAndNothingMore) {
  Candidate candidate;
  const Solver solve = [](const planner::Problem&,
                          const planner::Budget&) -> absl::StatusOr<planner::Solution> {
    throw std::bad_alloc();
  };
  EXPECT_NO_THROW(Plan(MakeRequest(ThreeSlots(), {}), 1.0, candidate, solve));
  EXPECT_TRUE(candidate.ready);
  EXPECT_EQ(candidate.status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Plan, FarAboveItsBoundIsNone) {
  profiler::Iteration iteration{.period = 2};
  for (int64_t i = 0; i < 2; ++i)
    iteration.slots.push_back({.bytes = Bytes(1 << 20), .alignment = Bytes(512), .begin = i, .length = 2});
  for (const int64_t parts : {8, 2}) {  // so far above, of the bound
    const Solver solve = [&](const planner::Problem& problem, const planner::Budget& budget) {
      auto solution = planner::Solve(problem, budget);
      const Bytes up(solution->lower_bound.count() / parts);
      for (Offset& offset : solution->placement.offsets) offset = offset + up;
      solution->placement.slab += up;
      return solution;
    };
    Candidate candidate;
    Plan(MakeRequest(iteration, {}), 1.0, candidate, solve);
    EXPECT_TRUE(candidate.ready);
    EXPECT_EQ(candidate.status.ok(), parts == 8) << candidate.status;
  }
}

// Its bound says that it cannot be lower, and most of it is free all the same.
TEST(Plan, AboveObstaclesThatLeaveNoHoleForItIsNone) {
  profiler::Iteration iteration{.period = 2};
  for (int64_t i = 0; i < 2; ++i)
    iteration.slots.push_back({.bytes = Bytes(1 << 20), .alignment = Bytes(512), .begin = i, .length = 2});
  for (const int64_t apart : {5 << 18, 3 << 18}) {
    std::vector<Obstacle> obstacles;
    for (int64_t at = 0; at < 6 << 20; at += apart) obstacles.push_back({Offset(at), Bytes(512)});
    const Solver solve = [](const planner::Problem& problem, const planner::Budget& budget) {
      auto solution = planner::Solve(problem, budget);
      solution->lower_bound = planner::LowerBound(problem);  // nothing is proven of a large one
      return solution;
    };
    Candidate candidate;
    Plan(MakeRequest(iteration, obstacles), 1.0, candidate, solve);
    EXPECT_TRUE(candidate.ready);
    EXPECT_EQ(candidate.status.ok(), apart > 1 << 20) << candidate.status;
  }
}

TEST(Plan, ThatOverlapsIsNone) {
  const Solver solve = [](const planner::Problem& problem, const planner::Budget& budget) {
    auto solution = planner::Solve(problem, budget);
    for (Offset& offset : solution->placement.offsets) offset = Offset(0);
    return solution;
  };
  Candidate candidate;
  Plan(MakeRequest(ThreeSlots(), {}), 1.0, candidate, solve);
  EXPECT_TRUE(candidate.ready);
  EXPECT_FALSE(candidate.status.ok());
}

TEST(Plan, CancelledBeforeItBeganSaysSo) {
  Candidate candidate;
  candidate.cancel = true;
  Plan(MakeRequest(ThreeSlots(), {}), 1.0, candidate);
  EXPECT_TRUE(candidate.ready);
  EXPECT_FALSE(candidate.status.ok());
}

}  // namespace
}  // namespace reprise::replay
