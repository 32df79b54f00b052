// Why: what stays of a job's start lies all over the addresses, and a plan around it may be so much higher than what is live that
// memory would have to move for it in every round.
#include "replay/laying.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/simulator.h"

namespace reprise::replay {
namespace {

constexpr Offset At(int64_t mib) { return Offset(mib << 20); }
constexpr Bytes MiB(int64_t mib) { return Bytes(mib << 20); }

// Two blocks of 4 MiB, and when they are gone one of 8.
profiler::Iteration TwoThenOne() {
  profiler::Iteration iteration{.period = 3};
  iteration.slots = {{.bytes = MiB(4), .alignment = Bytes(512), .begin = 0, .length = 2},
                     {.bytes = MiB(4), .alignment = Bytes(512), .begin = 1, .length = 1},
                     {.bytes = MiB(8), .alignment = Bytes(512), .begin = 2, .length = 1}};
  return iteration;
}

// A MiB each, with 4 MiB between them.
const std::vector<Obstacle> kApart = {{At(0), MiB(1)}, {At(5), MiB(1)}, {At(10), MiB(1)}};

PlanRequest RequestAround(const std::vector<Obstacle>& obstacles) {
  PlanRequest request = MakeRequest(TwoThenOne(), obstacles);
  request.granule = MiB(1);
  return request;
}

absl::StatusOr<ServingPlan> TryToLay(const PlanRequest& request) {
  const std::atomic<bool> cancel = false;
  planner::Budget budget = BudgetOf(1);
  budget.cancel = &cancel;
  return Lay(request, budget, planner::Solve);
}

ServingPlan Laid(const PlanRequest& request) {
  const absl::StatusOr<ServingPlan> plan = TryToLay(request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(ServingPlan());
}

TEST(Lay, APlanLiesBesideWhatStaysWhereThatNeedsFewerGranules) {
  const ServingPlan plan = Laid(RequestAround(kApart));
  EXPECT_EQ(plan.begin, At(11)) << "8 granules, and 3 that are there anyway; around them it would be 19";
  EXPECT_EQ(plan.end, At(19));
  EXPECT_EQ(plan.slab, MiB(8));
  EXPECT_EQ(plan.lower_bound, MiB(8));
  EXPECT_TRUE(plan.alone) << "what stays comes on top";
  for (const ServingPlan::Slot& slot : plan.slots) {
    EXPECT_GE(slot.offset, plan.begin);
    EXPECT_LE(slot.offset + slot.bytes, plan.end);
  }
}

TEST(Lay, BesideIsTheLowestRangeThatIsHighEnough) {
  std::vector<Obstacle> obstacles = kApart;
  obstacles.push_back({At(17), MiB(1)});  // behind a hole of 6 MiB
  obstacles.push_back({At(26), Bytes(512)});
  obstacles.push_back({At(90), MiB(1)});
  EXPECT_EQ(Laid(RequestAround(obstacles)).begin, At(18)) << "between two";
  obstacles[4].offset = At(25) + Bytes(512);
  EXPECT_EQ(Laid(RequestAround(obstacles)).begin, At(26)) << "in whole granules, behind the next";
}

// The host's blocks may be aligned to more than a granule, and what is not where it should be is served beside the plan.
TEST(Lay, BesideABlockIsAlignedAsItWasAskedFor) {
  profiler::Iteration iteration = TwoThenOne();
  iteration.slots[1].alignment = MiB(4);
  PlanRequest request = MakeRequest(iteration, kApart);
  request.granule = MiB(1);
  const ServingPlan plan = Laid(request);
  EXPECT_EQ(plan.begin, At(12)) << "the first one behind 11";
  EXPECT_EQ(plan.slots[1].offset.count() % MiB(4).count(), 0);
}

TEST(Lay, APlanLiesAroundWhatStaysWhereThatIsNoWorse) {
  EXPECT_EQ(Laid(RequestAround({})).begin, At(0));
  EXPECT_EQ(Laid(RequestAround({{At(8), MiB(1)}})).begin, At(0)) << "all of it fits below";
  PlanRequest request = RequestAround({{At(0), MiB(1)}, {At(8), MiB(20)}});
  EXPECT_EQ(Laid(request).begin, At(28)) << "a hole of 7 MiB is no use";
  request.granule = MiB(32);
  EXPECT_EQ(Laid(request).begin, At(0)) << "all of it is two granules either way";
}

TEST(Lay, WhatMayNotLieBesideAndIsFarAboveIsNone) {
  PlanRequest request = RequestAround(kApart);
  request.may_lie_beside = false;
  EXPECT_EQ(TryToLay(request).status().code(), absl::StatusCode::kResourceExhausted);
  request = RequestAround(kApart);
  request.addresses = At(18);
  EXPECT_EQ(TryToLay(request).status().code(), absl::StatusCode::kResourceExhausted) << "no more addresses";
  request.addresses = At(19);
  EXPECT_EQ(Laid(request).begin, At(11));
}

// What stays beside a plan takes memory, too, that the plan cannot have so that streams need not wait for one another.
TEST(Lay, BesideAPlanKeepsNoMoreForStreamsThanThereIsMemoryFor) {
  profiler::Iteration iteration = TwoThenOne();
  iteration.period = 4;
  iteration.slots.push_back({.bytes = MiB(2),
                             .alignment = Bytes(512),
                             .stream = Stream{1},
                             .begin = 3,
                             .length = 1,
                             .freed_on = Stream{1}});
  PlanRequest request = MakeRequest(iteration, kApart);
  request.granule = MiB(1);
  request.most_to_be_had = MiB(14);
  EXPECT_EQ(Laid(request).for_lag, MiB(2))
      << "3 granules of what stays, 8 of one stream's and 2 of the other's";
  EXPECT_EQ(Laid(request).slab, MiB(10));
  request.most_to_be_had = MiB(13);
  EXPECT_EQ(Laid(request).for_lag, Bytes(0)) << "nothing would be left for what comes unplanned";
  EXPECT_EQ(Laid(request).slab, MiB(8));
}

// Granules would go from one plan's places to the other's at each turn.
TEST(Lay, APlanLiesAmongOthersWhereTheyAre) {
  ServingPlan other;
  EXPECT_FALSE(MakeRequest(TwoThenOne(), kApart, {{&other, Tick(0)}}).may_lie_beside);
  other.begin = At(20);
  EXPECT_TRUE(MakeRequest(TwoThenOne(), kApart, {{&other, Tick(0)}}).may_lie_beside) << "it does so itself";
  EXPECT_TRUE(MakeRequest(TwoThenOne(), kApart).may_lie_beside);
}

// Forty blocks that stay, each behind one that goes; then steps of so many small blocks, and when they are gone so many large ones.
std::vector<profiler::Event> ScatteredStart(int steps, int small, int large, Bytes goes = MiB(8)) {
  std::vector<profiler::Event> events;
  const auto alloc = [&](Bytes bytes) {
    const BlockId id{events.size()};
    events.push_back({.kind = profiler::EventKind::kAlloc, .id = id, .bytes = bytes});
    return id;
  };
  const auto free_all = [&](std::vector<BlockId>& blocks) {
    for (const BlockId id : blocks) events.push_back({.kind = profiler::EventKind::kFree, .id = id});
    blocks.clear();
  };
  std::vector<BlockId> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(alloc(goes + Bytes(4096 * i)));
    alloc(MiB(4));
  }
  free_all(blocks);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < small; ++i) blocks.push_back(alloc(MiB(8)));
    free_all(blocks);
    for (int i = 0; i < large; ++i) blocks.push_back(alloc(MiB(20)));
    free_all(blocks);
  }
  return events;
}

TEST(Lay, AJobWhoseStartIsScatteredMovesNothingOnceItIsPlanned) {
  const auto moved_later = [](bool beside) {
    SimulationOptions options;
    options.sequence_rules.beside = beside;
    const auto moved = [&](int steps) {
      const auto result = Simulate(ScatteredStart(steps, 40, 16), options);
      EXPECT_TRUE(result.ok());
      EXPECT_EQ(result->overlaps, 0);
      EXPECT_EQ(result->counters.conflicts, 0);
      EXPECT_GE(result->counters.plans, 1);
      EXPECT_GE(result->counters.slab, MiB(480)) << "with what lies beside it";
      EXPECT_EQ(result->counters.slab <= result->counters.live_peak, beside);
      return result->counters.granules_moved;
    };
    return moved(20) - moved(10);
  };
  EXPECT_GT(moved_later(false), 500) << "so there is something to spare";
  EXPECT_EQ(moved_later(true), 0);
}

TEST(Lay, WhatIsFreeBelowAPlanBesideIsGivenBack) {
  // 40 of 4 MiB stay, each behind a hole of 30.
  const auto result = Simulate(ScatteredStart(20, 40, 16, MiB(30)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->counters.reserved_peak, MiB(1360)) << "as much was live in its start";
  EXPECT_LE(result->counters.reserved, MiB(40 * 6 + 40 * 8)) << "granules of what stays, and the plan's";
}

TEST(Lay, APlanLiesWhereThereAreAddresses) {
  // Around what stays it ends at 783 MiB, beside it at 883. An eighth of the addresses is for small blocks.
  InlineRunner runner;
  Engine::Options options;
  options.solve = SolveByWork;
  const auto engine = Engine::Create(options, std::make_unique<CountedMemory>(MiB(2), MiB(960)), &runner);
  ASSERT_TRUE(engine.ok());
  const Engine::Guard guard = (*engine)->Lock();
  std::map<BlockId, Offset> live;
  for (const profiler::Event& event : ScatteredStart(12, 50, 15)) {
    if (event.kind == profiler::EventKind::kFree) {
      (*engine)->Free(guard, live.at(event.id), Stream{0});
    } else {
      const auto place = (*engine)->Allocate(guard, event.bytes, Bytes(1), Stream{0});
      ASSERT_TRUE(place.has_value());
      live[event.id] = *place;
    }
  }
  const Counters counters = (*engine)->counters(guard);
  EXPECT_GE(counters.plans, 1);
  EXPECT_EQ(counters.conflicts, 0);
  EXPECT_EQ(counters.planned_bytes_after_plan, counters.bytes_after_plan);
}

}  // namespace
}  // namespace reprise::replay
