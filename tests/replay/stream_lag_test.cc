// Why: a plan that hands memory from stream to stream as soon as the host lets it lines up what the job runs at once, and a
// step takes up to half as long again; and what is kept free for that must not cost more than it brings.
#include "replay/stream_lag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/portfolio.h"
#include "planner/validator.h"
#include "replay/planning.h"
#include "replay/saved_plan.h"
#include "replay/simulator.h"
#include "replay/stream_order.h"
#include "tests/replay/stream_jobs.h"
#include "tests/replay/streams_at_work.h"

namespace reprise::replay {
namespace {

constexpr Stream kMain{0};
constexpr Stream kOther{1};
constexpr Stream kThird{2};
constexpr Bytes kMiB{1 << 20};

profiler::Slot SlotOn(Stream taken, Stream left, int64_t length, Bytes bytes = kMiB) {
  return {.bytes = bytes, .alignment = Bytes(512), .stream = taken, .length = length, .freed_on = left};
}

// A cycle of so many slots of the main stream, each gone at once, but for these.
profiler::Iteration Cycle(int64_t period, const std::vector<std::pair<int64_t, profiler::Slot>>& slots) {
  profiler::Iteration iteration;
  iteration.period = period;
  for (int64_t i = 0; i < period; ++i) iteration.slots.push_back(SlotOn(kMain, kMain, 1));
  for (const auto& [at, slot] : slots) iteration.slots[static_cast<size_t>(at)] = slot;
  for (int64_t i = 0; i < period; ++i) iteration.slots[static_cast<size_t>(i)].begin = i;
  return iteration;
}

std::optional<Lagged> LaggedOf(const PlanRequest& request, LagRules rules = {}) {
  return WithLag(request.problem, request.iteration.slots, request.slot_of, rules);
}

std::pair<int64_t, int64_t> LifetimeOf(const Lagged& lagged, uint32_t buffer) {
  const planner::Buffer& place = lagged.problem.buffers[lagged.place_of[buffer]];
  return {place.lower.count(), place.upper.count()};
}

using Lifetime = std::pair<int64_t, int64_t>;

TEST(WithLag, IsNothingToOneStream) {
  EXPECT_FALSE(LaggedOf(MakeRequest(Cycle(100, {}), {})).has_value());
  EXPECT_FALSE(OfSeveralStreams(Cycle(100, {}).slots));
  // The device has finished with what is left without a stream, and what is taken without one has places of its own.
  const profiler::Iteration without =
      Cycle(100, {{10, SlotOn(kMain, kEveryStream, 20)}, {50, SlotOn(kEveryStream, kEveryStream, 20)}});
  EXPECT_FALSE(LaggedOf(MakeRequest(without, {})).has_value());
  EXPECT_FALSE(OfSeveralStreams(without.slots));
}

TEST(WithLag, KeepsThePlaceOfABlockFreeWhereTheStreamChanges) {
  const profiler::Iteration iteration = Cycle(
      100,
      {{30, SlotOn(kOther, kOther, 10)}, {50, SlotOn(kThird, kMain, 8)}, {70, SlotOn(kMain, kOther, 12)}});
  EXPECT_TRUE(OfSeveralStreams(iteration.slots));
  const auto lagged = LaggedOf(MakeRequest(iteration, {}));
  ASSERT_TRUE(lagged.has_value());
  EXPECT_EQ(LifetimeOf(*lagged, 30), Lifetime(25, 45)) << "half of its life before, and as much behind";
  EXPECT_EQ(LifetimeOf(*lagged, 50), Lifetime(46, 58)) << "the main stream has left it";
  EXPECT_EQ(LifetimeOf(*lagged, 70), Lifetime(70, 88)) << "the main stream has taken it";
  EXPECT_EQ(LifetimeOf(*lagged, 31), Lifetime(31, 32)) << "the main stream's own";
  EXPECT_EQ(LifetimeOf(*LaggedOf(MakeRequest(iteration, {}), {.parts = 5}), 30), Lifetime(28, 42))
      << "a fifth";
}

TEST(WithLag, ALanesLagIsThatOfItsBriefBlocks) {
  const auto lagged = LaggedOf(MakeRequest(
      Cycle(100, {{20, SlotOn(kOther, kOther, 6)}, {40, SlotOn(kOther, kMain, 50, kMiB * 3)}}), {}));
  EXPECT_EQ(LifetimeOf(*lagged, 20), Lifetime(17, 29));
  EXPECT_EQ(LifetimeOf(*lagged, 40), Lifetime(37, 90)) << "what stays for long has no longer one";
  const auto beside = [](const profiler::Slot& slot) {
    return LifetimeOf(*LaggedOf(MakeRequest(Cycle(100, {{20, SlotOn(kOther, kOther, 6)}, {60, slot}}), {})),
                      20);
  };
  EXPECT_EQ(beside(SlotOn(kOther, kOther, 2, Bytes(512))), Lifetime(17, 29)) << "a few bytes say nothing";
  EXPECT_EQ(beside(SlotOn(kOther, kOther, 1, kMiB * 9)), Lifetime(17, 29))
      << "nor what is gone before the main stream has taken anything";
  EXPECT_EQ(beside(SlotOn(kOther, kOther, 2, kMiB * 9)), Lifetime(19, 27));
  const PlanRequest only_its_own = MakeRequest(Cycle(100, {{20, SlotOn(kOther, kOther, 1)}}), {});
  EXPECT_EQ(LifetimeOf(*LaggedOf(only_its_own), 20), Lifetime(20, 21)) << "a stream that shares nothing";
}

TEST(WithLag, BlocksOfALaneThatFollowOneAnotherShareAPlace) {
  const PlanRequest request = MakeRequest(Cycle(200, {{20, SlotOn(kOther, kOther, 10)},
                                                      {32, SlotOn(kOther, kOther, 10, kMiB + Bytes(4096))},
                                                      {36, SlotOn(kOther, kOther, 10)},
                                                      {46, SlotOn(kOther, kOther, 10)},
                                                      {150, SlotOn(kOther, kOther, 10)}}),
                                          {});
  const auto lagged = LaggedOf(request);
  ASSERT_TRUE(lagged.has_value());
  EXPECT_EQ(lagged->place_of[20], lagged->place_of[32]);
  EXPECT_EQ(lagged->place_of[36], lagged->place_of[46]);
  EXPECT_NE(lagged->place_of[32], lagged->place_of[36]) << "they live at once";
  EXPECT_NE(lagged->place_of[150], lagged->place_of[46])
      << "to keep it free until then takes more than another place";
  EXPECT_EQ(LifetimeOf(*lagged, 20), Lifetime(15, 47));
  EXPECT_EQ(lagged->problem.buffers[lagged->place_of[20]].size, request.problem.buffers[32].size)
      << "the larger";
}

TEST(WithLag, ACycleHasNoBeginningAndNoLifetimeIsLonger) {
  const auto lagged = LaggedOf(
      MakeRequest(Cycle(100, {{3, SlotOn(kOther, kOther, 10)}, {98, SlotOn(kThird, kThird, 99)}}), {}));
  EXPECT_EQ(LifetimeOf(*lagged, 3), Lifetime(98, 118));
  EXPECT_EQ(LifetimeOf(*lagged, 98), Lifetime(86, 186));
}

// Turns by the host's count: half of the cycle is one stream's, half another's.
profiler::Iteration Turns(const std::vector<std::pair<int64_t, profiler::Slot>>& slots = {}) {
  std::vector<std::pair<int64_t, profiler::Slot>> all;
  for (int64_t i = 60; i < 100; ++i) all.emplace_back(i, SlotOn(kOther, kOther, i < 96 ? 4 : 1));
  all.insert(all.end(), slots.begin(), slots.end());
  return Cycle(100, all);
}

int32_t LaneOfSlot(const profiler::Iteration& iteration, uint32_t slot, LagRules rules = {}) {
  const auto lagged = LaggedOf(MakeRequest(iteration, {}), rules);
  return lagged->problem.buffers[lagged->place_of[slot]].lane;
}

TEST(WithLag, StreamsThatTakeTurnsAndHandNothingOnShareNoBytes) {
  const profiler::Iteration turns = Turns();
  EXPECT_NE(LaneOfSlot(turns, 60), LaneOfSlot(turns, 0));
  EXPECT_NE(LaneOfSlot(turns, 60), MakeRequest(Turns(), {}).problem.buffers[0].lane);
  EXPECT_EQ(LifetimeOf(*LaggedOf(MakeRequest(turns, {})), 70), Lifetime(70, 74)) << "no lag besides";
  EXPECT_EQ(LaneOfSlot(turns, 60, {.apart = false}), LaneOfSlot(turns, 0));
  const profiler::Iteration three = Turns({{40, SlotOn(kThird, kThird, 2)}, {41, SlotOn(kThird, kThird, 1)}});
  EXPECT_NE(LaneOfSlot(three, 40), LaneOfSlot(three, 60)) << "nor with another such stream";
  // What stays is in nobody's place, and what is left without a stream is handed to nobody.
  profiler::Iteration with_state =
      Turns({{61, SlotOn(kOther, kOther, 100, kMiB * 9)}, {62, SlotOn(kOther, kEveryStream, 2)}});
  with_state.slots[61].persistent = true;
  EXPECT_NE(LaneOfSlot(with_state, 60), LaneOfSlot(with_state, 0));
}

// Each is a problem of its own, laid on top of the others.
TEST(WithLag, ManyStreamsAreNotAllApart) {
  std::vector<std::pair<int64_t, profiler::Slot>> slots;
  for (int64_t i = 0; i < 40; ++i) {
    const Stream own{static_cast<uint32_t>(i / 2 + 1)};
    slots.emplace_back(50 + i, SlotOn(own, own, 1));
  }
  const PlanRequest request = MakeRequest(Cycle(100, slots), {});
  const auto lagged = LaggedOf(request);
  std::map<int32_t, int> lanes;
  for (const planner::Buffer& buffer : lagged->problem.buffers) ++lanes[buffer.lane];
  EXPECT_EQ(lanes.size(), 17U);
}

TEST(WithLag, StreamsThatAreInStepMaySharePlaces) {
  const auto shares = [](const profiler::Slot& slot, int64_t at) {
    const profiler::Iteration iteration = Turns({{at, slot}});
    return LaneOfSlot(iteration, 62) == LaneOfSlot(iteration, 0);
  };
  EXPECT_TRUE(shares(SlotOn(kOther, kMain, 2, Bytes(512)), 61)) << "the main stream leaves what it has taken";
  EXPECT_TRUE(shares(SlotOn(kMain, kOther, 2, Bytes(512)), 5));
  EXPECT_TRUE(shares(SlotOn(kOther, kThird, 2, Bytes(512)), 61)) << "or another";
  EXPECT_TRUE(shares(SlotOn(kOther, kOther, 50), 90)) << "it lives on as the main stream goes on";
  EXPECT_FALSE(shares(SlotOn(kOther, kOther, 50, Bytes(kMiB.count() / 2)), 90)) << "not a 64th";
  EXPECT_TRUE(shares(SlotOn(kMain, kMain, 60), 20)) << "or of the main stream's beside it";
  EXPECT_FALSE(shares(SlotOn(kMain, kMain, 60, Bytes(kMiB.count() / 2)), 20));
}

// By lane: whether another stream than the main one takes its blocks, and which other stream it is.
using Lane = std::pair<bool, Stream>;

std::optional<Lane> LaneOf(const profiler::Slot& slot) {
  if (slot.stream != kMain) return Lane(true, slot.stream);
  return slot.freed_on != kMain ? std::optional(Lane(false, slot.freed_on)) : std::nullopt;
}

std::map<Lane, int64_t> LagsOf(const profiler::Iteration& iteration) {
  std::map<Lane, std::map<int64_t, int64_t>> bytes;
  for (const profiler::Slot& slot : iteration.slots) {
    bool across_main = false;
    for (int64_t at = slot.begin + 1; at < slot.begin + slot.length; ++at)
      across_main |= iteration.slots[static_cast<size_t>(at % iteration.period)].stream == kMain;
    const auto lane = LaneOf(slot);
    if (lane.has_value() && across_main) bytes[*lane][slot.length] += slot.bytes.count();
  }
  std::map<Lane, int64_t> lags;
  for (const auto& [lane, by_length] : bytes) {
    int64_t all = 0, shorter = 0;
    for (const auto& [length, of_length] : by_length) all += of_length;
    for (const auto& [length, of_length] : by_length) {
      if (4 * shorter < all) lags[lane] = std::min(length, iteration.period / 4) / 2;
      shorter += of_length;
    }
  }
  return lags;
}

// Whether nothing of the main stream's own shares a byte with block `a` while that is kept from it.
bool IsApart(const PlanRequest& request, const planner::Placement& placement, size_t a, int64_t lag) {
  const profiler::Slot& aside = request.iteration.slots[request.slot_of[a]];
  planner::Problem problem;
  problem.period = request.problem.period;
  planner::Placement of_problem;
  for (size_t b = 0; b < request.slot_of.size(); ++b) {
    const bool own = !LaneOf(request.iteration.slots[request.slot_of[b]]).has_value();
    if (b != a && !own) continue;
    planner::Buffer buffer = request.problem.buffers[b];
    if (b == a) {
      if (aside.freed_on != kMain) buffer.upper = buffer.upper + lag;
      if (aside.stream != kMain) buffer.lower = buffer.lower - lag;
      buffer.upper = std::min(buffer.upper, buffer.lower + *problem.period);
      const int64_t turn = buffer.lower < Tick(0) ? *problem.period : 0;
      buffer.lower = buffer.lower + turn;
      buffer.upper = buffer.upper + turn;
    }
    problem.buffers.push_back(buffer);
    of_problem.offsets.push_back(placement.offsets[b]);
    of_problem.slab = std::max(of_problem.slab, placement.offsets[b] + buffer.size - Offset(0));
  }
  return planner::CheckPlacement(problem, of_problem).ok();
}

// Cycles drawn at random, an obstacle beside them.
TEST(WithLag, APlacementIsOneOfTheCycleWithALagBetweenStreams) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 40; ++round) {
    const int64_t period = draw(20, 120);
    std::vector<std::pair<int64_t, profiler::Slot>> slots;
    for (int64_t i = 0; i < period; ++i) {
      const Stream taken = draw(0, 4) > 0 ? kMain : draw(0, 1) == 0 ? kOther : kThird;
      const Stream left = draw(0, 3) > 0 ? taken : kThird;
      slots.emplace_back(i, SlotOn(taken, left, draw(1, draw(1, period)), Bytes(512 * draw(1, 200))));
    }
    const PlanRequest request = MakeRequest(
        Cycle(period, slots), {{.offset = Offset(512 * draw(0, 2000)), .bytes = Bytes(512 * draw(1, 99))}});
    const auto lagged = LaggedOf(request);
    ASSERT_TRUE(lagged.has_value());
    const auto solution = planner::Solve(lagged->problem, {.seconds = 10, .steps = 20000});
    ASSERT_TRUE(solution.ok()) << solution.status();
    planner::Placement placement = {.offsets = {}, .slab = solution->placement.slab};
    for (const uint32_t place : lagged->place_of)
      placement.offsets.push_back(solution->placement.offsets[place]);
    placement.offsets.push_back(*request.problem.buffers.back().pinned);
    EXPECT_TRUE(planner::CheckPlacement(request.problem, placement).ok());
    const std::map<Lane, int64_t> lags = LagsOf(request.iteration);
    for (size_t a = 0; a < request.slot_of.size(); ++a) {
      const auto lane = LaneOf(request.iteration.slots[request.slot_of[a]]);
      if (!lane.has_value()) continue;
      EXPECT_TRUE(IsApart(request, placement, a, lags.contains(*lane) ? lags.at(*lane) : 0))
          << round << " " << a;
    }
  }
}

// What makes a plan higher for another reason is moved away as that of any other plan.
TEST(Lag, NothingIsForALagThatIsNotKept) {
  const auto saved = [](const ServingPlan& plan) {
    SavedPlan::Cycle cycle = {.slots = plan.cycle, .slab = plan.slab, .lower_bound = plan.lower_bound};
    for (const ServingPlan::Slot& slot : plan.slots) cycle.offsets.push_back(slot.offset);
    return ToServe(cycle)->for_lag;
  };
  profiler::Iteration iteration = Cycle(100, {{30, SlotOn(kOther, kOther, 10)}});
  iteration.slots[29].bytes = kMiB * 16;  // just before a block of the other stream
  PlanRequest request = MakeRequest(iteration, {});
  Candidate lagged;
  Plan(request, 0.1, lagged);
  ASSERT_TRUE(lagged.status.ok()) << lagged.status;
  EXPECT_EQ(lagged.plan.for_lag, kMiB) << "above the 16 that are live at once";
  EXPECT_EQ(saved(lagged.plan), kMiB);

  request.keeps_lag = false;
  Candidate high;
  Plan(request, 0.1, high, [](const planner::Problem& problem, const planner::Budget& budget) {
    absl::StatusOr<planner::Solution> solution = planner::Solve(problem, budget);
    for (Offset& offset : solution->placement.offsets) offset = offset + kMiB * 3;
    solution->placement.slab += kMiB * 3;
    return solution;
  });
  ASSERT_TRUE(high.status.ok()) << high.status;
  EXPECT_EQ(high.plan.for_lag, Bytes(0));
  for (ServingPlan::Slot& slot : high.plan.slots) slot.offset = slot.offset + kMiB * 2;
  high.plan.slab += kMiB * 2;
  EXPECT_EQ(saved(high.plan), Bytes(0)) << "more than a lag may take";
}

struct Played {
  double time;      // of a step, over that with memory nobody waits for
  double reserved;  // over the live peak
  StreamOutcome outcome;
};

// On a device that has `memory` times the live peak, if not any.
Played Play(const StreamJob& job, bool lag, double memory = 0) {
  Engine::Options options;
  options.solve = SolveByWork;
  options.sequence_rules.lag = lag;
  const StreamOutcome alone = PlayWithoutWaits(job);
  const StreamOutcome served = PlayServed(
      job, options, Bytes(static_cast<int64_t>(memory * static_cast<double>(alone.live_peak.count()))));
  return {served.step / alone.step,
          static_cast<double>(served.counters.reserved_peak.count()) /
              static_cast<double>(served.live_peak.count()),
          served};
}

TEST(Lag, WhatStreamsDoAtOnceTheyDoAtOnceUnderAPlan) {
  for (const StreamUse use : {StreamUse::kSharded, StreamUse::kShardedRecorded, StreamUse::kBranches}) {
    for (const bool recompute : {false, true}) {
      const StreamJob job =
          MakeStreamJob({.use = use, .seed = 0, .layers = 12, .steps = 12, .recompute = recompute});
      const Played with = Play(job, true);
      const Played without = Play(job, false);
      const auto what = [&] { return std::string(NameOf(use)) + (recompute ? ", recomputed" : ""); };
      EXPECT_EQ(with.outcome.overlaps, 0);
      EXPECT_GT(with.outcome.counters.planned_bytes_after_plan.count(), 0);
      EXPECT_GE(without.time, 1.15) << what() << ": so there is something to lose";
      EXPECT_LE(with.time, 1.02) << what();
      EXPECT_LE(with.reserved, 1.125) << what();
      EXPECT_EQ(with.outcome.moved_a_step, 0) << what() << ": what is kept free stays where it is";
    }
  }
}

// More is held than a plan may cost that keeps its places from others.
TEST(Lag, IsNoReasonToGiveAPlanUp) {
  const Played with =
      Play(MakeStreamJob({.use = StreamUse::kSharded, .seed = 2, .steps = 12, .recompute = true}), true);
  const Counters& counters = with.outcome.counters;
  EXPECT_GT(with.reserved, 1.07) << "so there is something to object to";
  EXPECT_LE(with.reserved, 1.13);
  EXPECT_EQ(counters.planned_bytes_after_plan, counters.bytes_after_plan);
  EXPECT_EQ(with.outcome.moved_a_step, 0);
}

TEST(Lag, AJobOfOneStreamIsServedAsWithout) {
  const StreamJob job = MakeStreamJob({.use = StreamUse::kOneStream, .layers = 6, .steps = 8});
  const Played with = Play(job, true);
  const Played without = Play(job, false);
  EXPECT_EQ(with.reserved, without.reserved);
  EXPECT_EQ(with.outcome.counters.held_for_streams, Bytes(0));
  EXPECT_EQ(with.outcome.counters.slab, without.outcome.counters.slab);
}

// By the host's count one goes on as soon as the other is done for the step.
TEST(Lag, TwoModelsRunAtOnce) {
  for (const bool recompute : {false, true}) {
    const StreamJob job = MakeStreamJob(
        {.use = StreamUse::kTwoModels, .seed = 1, .layers = 12, .steps = 12, .recompute = recompute});
    const Played with = Play(job, true);
    EXPECT_GE(Play(job, false).time, 1.8) << "so there is something to lose";
    EXPECT_LE(with.time, 1.01);
    EXPECT_LE(with.reserved, 1.25);
    EXPECT_GE(with.outcome.counters.held_for_streams * 20, with.outcome.live_peak);
    EXPECT_EQ(with.outcome.moved_a_step, 0);
    EXPECT_EQ(with.outcome.overlaps, 0);
  }
}

// Of a plan for the next run what stays beside it counts as well: it is held, too.
TEST(Lag, IsKeptInTheNextRun) {
  for (const StreamUse use : {StreamUse::kTwoModels, StreamUse::kSharded}) {
    const StreamJob job = MakeStreamJob({.use = use, .seed = 1, .layers = 12, .steps = 12});
    const Played first = Play(job, true);
    const SavedPlan saved = MakeSavedPlan({}, first.outcome.known, 1.0);
    const auto plans = ToExpect(saved);
    ASSERT_TRUE(plans.ok()) << plans.status();
    const StreamOutcome next = PlayServed(job, {.solve = SolveByWork}, Bytes(0), *plans);
    EXPECT_EQ(next.counters.plans_resumed, 1);
    EXPECT_LE(next.step / PlayWithoutWaits(job).step, 1.03);
    EXPECT_GT(next.counters.held_for_streams, Bytes(0));
    EXPECT_EQ(next.moved_a_step, 0);
    EXPECT_EQ(next.overlaps, 0);
  }
}

// Where the device has not the memory a plan is laid again with less for streams, and what it needs stays where it is.
TEST(Lag, IsNotKeptWhereThereIsNotTheMemory) {
  for (const auto& [use, memory] : {std::pair(StreamUse::kTwoModels, 1.05), {StreamUse::kSharded, 1.03}}) {
    const StreamJob job = MakeStreamJob({.use = use, .seed = 1, .layers = 12, .steps = 16});
    const Played scarce = Play(job, true, memory);
    EXPECT_GT(Play(job, true).reserved, memory) << "so there is something to lack";
    EXPECT_LE(scarce.reserved, memory);
    EXPECT_LT(scarce.outcome.counters.slab, Play(job, true).outcome.counters.slab);
    EXPECT_EQ(scarce.outcome.left_to_driver, 0);
    EXPECT_EQ(scarce.outcome.moved_a_step, 0);
    EXPECT_EQ(scarce.outcome.overlaps, 0);
  }
}

// Three threads at once, each of which does by turns what two streams hand nothing to each other in.
StreamJob ThreadsOfTurns(int steps) {
  constexpr int kThreads = 3;
  StreamJob job;
  job.Alloc(Stream{0}, kMiB * 200);  // stays
  std::mt19937 random(1);
  for (int step = 0; step < steps; ++step) {
    std::vector<int64_t> blocks[kThreads];
    int at[kThreads] = {};
    const auto go_on = [&](uint32_t thread) {
      const bool turn = at[thread] < 64;
      const Stream stream{2 * thread + (turn ? 0 : 1)};
      job.SetThread(thread);
      blocks[thread].push_back(job.Alloc(stream, turn ? kMiB * 4 : kMiB));
      if (++at[thread] != 64 && at[thread] != 96) return;
      while (!blocks[thread].empty()) {
        job.Free(stream, blocks[thread].back());
        blocks[thread].pop_back();
      }
    };
    for (int left = kThreads * 96; left > 0;) {
      const uint32_t thread = random() % kThreads;
      if (at[thread] == 96) continue;
      go_on(thread);
      --left;
    }
    job.Work(Stream{0}, 20'000);
    job.Await(Stream{0}, job.Record(Stream{0}));
    job.EndStep(Stream{0});
  }
  return job;
}

// What the others' plans take is not to be had for the one's streams.
TEST(Lag, ThreadsTakeNoMoreTogetherThanThereIs) {
  const StreamJob job = ThreadsOfTurns(60);
  const Played scarce = Play(job, true, 1.03);
  EXPECT_EQ(scarce.outcome.counters.threads, 3);
  EXPECT_GT(Play(job, true).reserved, 1.08) << "so there is something to lack";
  EXPECT_LE(scarce.reserved, 1.03);
  EXPECT_LE(scarce.outcome.moved_a_step, 4);
  EXPECT_LE(scarce.outcome.counters.plans, 9);
  EXPECT_EQ(scarce.outcome.left_to_driver, 0);
}

// Nothing is to be had by plan where each request is of another size; and no stream waits for another's.
TEST(Lag, WithoutAPlanStreamsRunAtOnceToo) {
  const StreamJob job = MakeStreamJob({.use = StreamUse::kWorkers, .seed = 1, .layers = 12, .steps = 40});
  Engine::Options options;
  options.plan = false;
  options.arena_rules.for_streams = false;
  const StreamOutcome alone = PlayWithoutWaits(job);
  EXPECT_GE(PlayServed(job, options).step / alone.step, 1.3) << "so there is something to lose";
  options.arena_rules.for_streams = true;
  EXPECT_LE(PlayServed(job, options).step / alone.step, 1.05);
  const Played with = Play(job, true);
  EXPECT_LE(with.time, 1.06);
  EXPECT_LE(with.reserved, 1.13);
  EXPECT_EQ(with.outcome.overlaps, 0);
  const Played scarce = Play(job, true, 1.04);
  EXPECT_EQ(scarce.outcome.left_to_driver, 0);
  EXPECT_EQ(scarce.outcome.overlaps, 0);
}

}  // namespace
}  // namespace reprise::replay
