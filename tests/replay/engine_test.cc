// Why: the engine's contract towards the shim, case by case: what it refuses, what it ignores and counts, how
// it behaves while a plan is being solved, and that a plan is only ever adopted at the cut.
#include "replay/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "planner/portfolio.h"
#include "replay/counted_memory.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

constexpr Stream kStream{0};

// Keeps planning jobs until the test lets them run.
class HeldRunner : public PlanRunner {
 public:
  void Run(std::function<void()> job) override { jobs.push_back(std::move(job)); }
  void RunAll() {
    for (const auto& job : jobs) job();
    jobs.clear();
  }
  std::vector<std::function<void()>> jobs;
};

// The planner has little time: what it reaches is not what is tested.
const Engine::Options kQuick{.plan_seconds = 0.05};

std::unique_ptr<Engine> MakeEngine(PlanRunner* runner, const Engine::Options& options = kQuick,
                                   Bytes memory = Bytes(int64_t{1} << 40)) {
  auto engine =
      Engine::Create(options, std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64, memory), runner);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return std::move(*engine);
}

TEST(Engine, RefusesARangeWhoseUnitsItCannotCount) {
  const auto create = [](Bytes reserve) {
    InlineRunner runner;
    return Engine::Create({}, std::make_unique<CountedMemory>(Bytes(2 << 20), reserve), &runner).status();
  };
  EXPECT_EQ(create(kLargestRange), absl::OkStatus());
  EXPECT_EQ(create(kLargestRange + Bytes(2 << 20)).code(), absl::StatusCode::kInvalidArgument);
}

// Feeds a script to an engine, from where the last call stopped.
class Feeder {
 public:
  Feeder(Engine* engine, const EventScript& script) : engine_(engine), script_(script) {}

  void Until(size_t end) {
    const Engine::Guard guard = engine_->Lock();
    for (; at_ < end; ++at_) {
      const profiler::Event& event = script_.events()[at_];
      if (event.kind == profiler::EventKind::kAlloc) {
        const auto offset = engine_->Allocate(guard, event.bytes, Bytes(64), event.stream);
        if (offset.has_value()) placed_[event.id] = *offset;
      } else if (const auto it = placed_.find(event.id); it != placed_.end()) {
        engine_->Free(guard, it->second, event.stream);
        placed_.erase(it);
      }
    }
  }
  void All() { Until(script_.events().size()); }

 private:
  Engine* engine_;
  const EventScript& script_;
  std::map<BlockId, Offset> placed_;
  size_t at_ = 0;
};

TEST(Engine, ServesAlignedBlocksAndTakesThemBack) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  for (const int64_t alignment : {1, 64, 512, 4096, 2 << 20}) {
    const auto offset = engine->Allocate(guard, Bytes(10'000), Bytes(alignment), kStream);
    ASSERT_TRUE(offset.has_value());
    EXPECT_EQ(offset->count() % alignment, 0);
    EXPECT_GE(engine->UsableSize(guard, *offset), Bytes(10'000));
    EXPECT_TRUE(engine->Free(guard, *offset, kStream));
  }
  EXPECT_EQ(engine->counters(guard).live, Bytes(0));
}

// A slot is known by the size; the next time more may be asked of its address.
TEST(Engine, ASlotOfLessAlignmentIsNotGiven) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  const auto round = [&](Bytes alignment) {
    std::vector<Offset> placed;
    for (int i = 0; i < 24; ++i) {
      placed.push_back(*engine->Allocate(guard, Bytes(5'120 * (1 + i * 7 % 11)), alignment, kStream));
      EXPECT_EQ(placed.back().count() % alignment.count(), 0);
    }
    for (const Offset offset : placed) engine->Free(guard, offset, kStream);
  };
  for (int i = 0; i < 40; ++i) round(Bytes(64));
  const int64_t planned = engine->counters(guard).planned;
  ASSERT_GT(planned, 0);
  round(Bytes(1 << 20));
  EXPECT_GT(engine->counters(guard).conflicts, 0) << "it was in step";
}

// Slots of 8 KiB, and one at the end of all that the plan covers.
ServingPlan PlanUpTo(Offset end) {
  ServingPlan plan;
  const auto add = [&](Offset at) {
    plan.slots.push_back({.bytes = Bytes(8192), .offset = at});
    plan.cycle.push_back({.bytes = Bytes(8192), .alignment = Bytes(64), .length = 1});
  };
  for (int64_t i = 1; i < profiler::PeriodFinder::kMinPeriod; ++i) add(Offset(i * 16384));
  add(end - Bytes(8192));
  plan.end = end;
  return plan;
}

TEST(Engine, WhereThePlanCoversAllThereIsRoomWithinIt) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  std::vector<Sequence::Expected> expected;
  expected.push_back({PlanUpTo(Offset(0) + kGiB * 56), Tick(0)});  // up to the small blocks
  ASSERT_TRUE(engine->Expect(guard, std::move(expected)).ok());
  EXPECT_TRUE(engine->Allocate(guard, kMiB, Bytes(64), kStream).has_value());
  EXPECT_EQ(engine->counters(guard).passed, 0);
}

TEST(Engine, UnknownFreesAreCountedAndChangeNothing) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  const auto offset = engine->Allocate(guard, Bytes(8192), Bytes(64), kStream);
  EXPECT_FALSE(engine->Free(guard, *offset + Bytes(512), kStream));
  EXPECT_TRUE(engine->Free(guard, *offset, kStream));
  EXPECT_FALSE(engine->Free(guard, *offset, kStream)) << "twice";
  EXPECT_EQ(engine->counters(guard).unknown_frees, 2);
  EXPECT_EQ(engine->UsableSize(guard, *offset), Bytes(0));
}

TEST(Engine, ARefusingSourceMeansTheRealAllocator) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner, kQuick, /*memory=*/Bytes(4 << 20));
  const Engine::Guard guard = engine->Lock();
  EXPECT_FALSE(engine->Allocate(guard, Bytes(6 << 20), Bytes(64), kStream).has_value());
  EXPECT_TRUE(engine->Allocate(guard, Bytes(1 << 20), Bytes(64), kStream).has_value());
  EXPECT_EQ(engine->counters(guard).passed, 1);
}

TEST(Engine, ZeroBytesIsABlockOfItsOwn) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  const auto a = engine->Allocate(guard, Bytes(0), Bytes(64), kStream);
  const auto b = engine->Allocate(guard, Bytes(0), Bytes(64), kStream);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_NE(*a, *b);
}

TEST(Engine, GoesOnServingWhileAPlanIsSolvedAndAdoptsAtTheNextCut) {
  EventScript script;
  AppendTraining(script, 12);
  HeldRunner runner;
  const auto engine = MakeEngine(&runner);
  Feeder feeder(engine.get(), script);
  const size_t half = script.events().size() / 2;
  feeder.Until(half);
  ASSERT_EQ(runner.jobs.size(), 1u);
  EXPECT_EQ(engine->counters(engine->Lock()).plans, 0);
  runner.RunAll();
  EXPECT_EQ(engine->counters(engine->Lock()).plans, 0) << "not before the cut";
  feeder.All();
  const Counters c = engine->counters(engine->Lock());
  EXPECT_EQ(c.plans, 1);
  EXPECT_FALSE(engine->plans_without_stream(engine->Lock()));
  EXPECT_EQ(c.planned_requests_after_plan, c.requests_after_plan);
  EXPECT_EQ(c.conflicts, 0);
}

// A plan that waits for its cut is not in use, whatever happens meanwhile.
TEST(Engine, WhatHappensBeforeAPlanIsInUseIsNoMismatch) {
  EventScript script;
  TrainingJob job(&script);
  job.Iterate(6);
  const size_t solved = script.events().size();
  for (int i = 0; i < 10; ++i) job.Evaluate();
  job.Iterate(6);
  HeldRunner runner;
  const auto engine = MakeEngine(&runner);
  Feeder feeder(engine.get(), script);
  feeder.Until(solved);
  ASSERT_EQ(runner.jobs.size(), 1u);
  runner.RunAll();
  feeder.All();
  const Counters c = engine->counters(engine->Lock());
  ASSERT_EQ(c.plans, 1);
  EXPECT_EQ(c.planned_requests_after_plan, c.requests_after_plan);
  EXPECT_EQ(c.mismatches, 0);
  EXPECT_EQ(c.times_lost, 0);
}

// More than the job ever had live, and no more than was held while there was no plan; blocks beyond it count.
TEST(Engine, SaysWhatItsPlanNeeds) {
  EventScript script;
  AppendTraining(script, 12);
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  EXPECT_EQ(engine->counters(engine->Lock()).plan_needs, Bytes(0));
  const Bytes granule(2 << 20);
  const auto small = engine->Allocate(engine->Lock(), Bytes(512), Bytes(64), kStream);
  ASSERT_TRUE(small.has_value());
  Feeder(engine.get(), script).All();
  const Counters c = engine->counters(engine->Lock());
  ASSERT_EQ(c.plans, 1);
  EXPECT_GE(c.plan_needs, c.live_peak);
  EXPECT_LE(c.plan_needs, c.reserved_peak);
  EXPECT_EQ(c.plan_needs, RoundUp(c.slab, granule) + granule)
      << "the small block lies in a granule of its own";
}

TEST(Engine, WhatIsPlacedAgainCountsAsPlaced) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner, kQuick, /*memory=*/Bytes(4 << 20));
  const Engine::Guard guard = engine->Lock();
  const auto first = engine->Allocate(guard, Bytes(4 << 20), Bytes(512), kStream);
  for (const bool place : {true, false}) {
    const Engine::Request request = {.bytes = Bytes(1 << 20), .alignment = Bytes(512), .place = place};
    BlockInfo left;
    ASSERT_EQ(engine->Allocate(guard, request, &left), Engine::kNowhere);
    if (place) {
      EXPECT_FALSE(engine->PlaceAgain(guard, request, left).has_value()) << "nothing has been given back";
      EXPECT_TRUE(engine->Free(guard, *first, kStream));
      EXPECT_EQ(engine->counters(guard).passed, 1);
    } else {
      EXPECT_EQ(engine->counters(guard).outside, 1);
    }
    EXPECT_TRUE(engine->PlaceAgain(guard, request, left).has_value());
    EXPECT_EQ(engine->counters(guard).passed + engine->counters(guard).outside, 0);
  }
  EXPECT_EQ(engine->counters(guard).live, Bytes(2 << 20));
}

// A job that tries how much there is asks for more than the device has, however well it is served.
TEST(Engine, WhatNobodyCouldServeIsInNoShare) {
  EventScript script;
  AppendTraining(script, 12);
  InlineRunner runner;
  const auto engine = MakeEngine(&runner, kQuick, /*memory=*/Bytes(int64_t{1} << 30));
  const Engine::Request tried = {.bytes = kGiB * 4, .alignment = Bytes(512)};
  const auto try_it = [&] {
    const Engine::Guard guard = engine->Lock();
    BlockInfo left;
    ASSERT_EQ(engine->Allocate(guard, tried, &left), Engine::kNowhere);
    engine->DropOutside(guard, left);
  };
  try_it();
  EXPECT_EQ(engine->counters(engine->Lock()).bytes_after_plan, Bytes(0));
  Feeder(engine.get(), script).All();
  const Counters before = engine->counters(engine->Lock());
  ASSERT_EQ(before.plans, 1);
  try_it();
  const Counters after = engine->counters(engine->Lock());
  EXPECT_EQ(after.requests_after_plan, before.requests_after_plan);
  EXPECT_EQ(after.bytes_after_plan, before.bytes_after_plan);
  EXPECT_EQ(after.passed, before.passed + 1);
}

// Taken for a stray it would stand in the way of the whole cycle.
TEST(Engine, TheBlockWhoseRequestAsksForThePlanIsOfTheCycleToo) {
  EventScript script;
  for (int round = 0; round < 12; ++round) {
    std::vector<BlockId> blocks;
    for (int64_t i = 0; i < 12; ++i) blocks.push_back(script.Alloc((i % 5 + 1) * 65536));
    for (const BlockId block : blocks) script.Free(block);
  }
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  Feeder(engine.get(), script).All();
  const Counters c = engine->counters(engine->Lock());
  ASSERT_EQ(c.plans, 1);
  EXPECT_EQ(c.slab, c.live_peak);
}

TEST(Engine, RecordingOnlyNeverPlans) {
  EventScript script;
  AppendTraining(script, 12);
  HeldRunner runner;
  Engine::Options options;
  options.plan = false;
  const auto engine = MakeEngine(&runner, options);
  Feeder(engine.get(), script).All();
  EXPECT_TRUE(runner.jobs.empty());
  EXPECT_GT(engine->counters(engine->Lock()).iterations, 0);
}

// Fails as often as told to, then solves.
Engine::Options Failing(int times, int* solves) {
  Engine::Options options = kQuick;
  options.solve = [times, solves](const planner::Problem& problem,
                                  const planner::Budget& budget) -> absl::StatusOr<planner::Solution> {
    if ((*solves)++ < times) return absl::ResourceExhaustedError("as told");
    return planner::Solve(problem, budget);
  };
  return options;
}

TEST(Engine, AFailedPlanIsCountedAndAskedForAgain) {
  EventScript script;
  AppendTraining(script, 20);
  InlineRunner runner;
  int solves = 0;
  const auto engine = MakeEngine(&runner, Failing(2, &solves));
  Feeder(engine.get(), script).All();
  const Counters c = engine->counters(engine->Lock());
  EXPECT_EQ(c.plans_failed, 2);
  EXPECT_EQ(c.plans, 1);
  EXPECT_EQ(solves, 3);
  EXPECT_EQ(c.passed, 0);
}

TEST(Engine, APlannerThatAlwaysFailsIsAskedLessAndLess) {
  EventScript script;
  AppendTraining(script, 300);
  InlineRunner runner;
  int solves = 0;
  const auto engine = MakeEngine(&runner, Failing(1'000'000, &solves));
  Feeder(engine.get(), script).All();
  EXPECT_GE(solves, 4);
  EXPECT_LE(solves, 12) << "after 1, 2, 4 ... 64 rounds";
}

// The first tensor of a step may be the batch, whose size is another one each time: the cut is never met as
// it was planned, nor may what comes right before it tell that it is near.
TEST(Engine, ACutThatIsNeverTheSameIsMetALittleLater) {
  constexpr int kTokens = 100;
  for (const int varying : {0, 1, 50, kTokens - 5, kTokens - 1}) {
    EventScript script;
    for (int round = 0; round < 60; ++round) {
      std::vector<BlockId> blocks;
      for (int i = 0; i < kTokens; ++i)
        blocks.push_back(script.Alloc(i == varying ? (3000 + round) * 4096 : (1 + i * i % 997) * 4096));
      for (; !blocks.empty(); blocks.pop_back()) script.Free(blocks.back());
    }
    InlineRunner runner;
    const auto engine = MakeEngine(&runner);
    Feeder(engine.get(), script).All();
    const Counters c = engine->counters(engine->Lock());
    EXPECT_EQ(c.plans, 1) << varying;
    EXPECT_GT(static_cast<double>(c.planned) / static_cast<double>(c.requests), 0.8) << varying;
  }
}

// On a full device the search for what can be given back puts all gaps of the plan on record at once.
TEST(Engine, RoomIsMadeAmongManyBlocksOfAPlan) {
  constexpr int kBlocks = 10'000;
  constexpr Bytes kSmall(8192);
  const Bytes large = kMiB * 100;
  InlineRunner runner;
  Engine::Options options = kQuick;
  options.capacity = large + RoundUp(kSmall * (2 * kBlocks), kMiB * 2);
  const auto engine = MakeEngine(&runner, options);
  const Engine::Guard guard = engine->Lock();
  ServingPlan plan;
  const auto add = [&](Bytes bytes, Offset at) {
    plan.slots.push_back({.bytes = bytes, .offset = at});
    plan.cycle.push_back({.bytes = bytes, .alignment = Bytes(64), .length = kBlocks / 2});
    plan.end = std::max(plan.end, at + bytes);
  };
  for (int i = 0; i < kBlocks; ++i) add(kSmall, Offset(0) + large + kSmall * (2 * i));
  add(large, Offset(0));
  std::vector<Sequence::Expected> expected;
  expected.push_back({std::move(plan), Tick(0)});
  ASSERT_TRUE(engine->Expect(guard, std::move(expected)).ok());
  for (int i = 0; i < kBlocks; ++i)
    ASSERT_TRUE(engine->Allocate(guard, kSmall, Bytes(64), kStream).has_value());
  const std::optional<Offset> block = engine->Allocate(guard, large, Bytes(64), kStream);
  ASSERT_TRUE(block.has_value());
  engine->Free(guard, *block, kStream);
  EXPECT_TRUE(engine->Allocate(guard, kMiB * 50, Bytes(64), kStream).has_value());
  EXPECT_EQ(engine->placed(guard), kSmall * kBlocks + kMiB * 50);
}

// A job may ask for more than there is once a step, and go on without: no plan makes room for that.
TEST(Engine, WhatIsNeverServedIsInNoPlan) {
  for (const Bytes hopeless : {kGiB * 40, Bytes(int64_t{1} << 50), Bytes(INT64_MAX / 2)}) {
    InlineRunner runner;
    const auto engine = MakeEngine(&runner, kQuick, kGiB);
    const Engine::Guard guard = engine->Lock();
    for (int round = 0; round < 30; ++round) {
      std::vector<Offset> blocks;
      for (int i = 0; i < 20; ++i) {
        const auto block = engine->Allocate(guard, Bytes((1 + i) * 65536), Bytes(64), kStream);
        ASSERT_TRUE(block.has_value());
        blocks.push_back(*block);
      }
      BlockInfo left;
      EXPECT_EQ(engine->Allocate(guard, {.bytes = hopeless, .alignment = Bytes(512)}, &left),
                Engine::kNowhere);
      engine->DropOutside(guard, left);
      for (const Offset block : blocks) engine->Free(guard, block, kStream);
    }
    const Counters c = engine->counters(guard);
    EXPECT_EQ(c.plans, 1) << hopeless.count();
    EXPECT_EQ(c.passed, 30);
    EXPECT_LE(c.slab, c.live_peak + kMiB) << hopeless.count();
    EXPECT_LE(c.plan_needs, c.live_peak + kMiB * 4);
    EXPECT_GE(c.bytes_after_plan, c.planned_bytes_after_plan);
    EXPECT_LT(c.bytes_after_plan, kGiB);
  }
}

TEST(Engine, ALongerPeriodReplacesAPlanThatNoLongerMatches) {
  EventScript script;
  AppendTraining(script, 10, {.layers = 8});
  AppendTraining(script, 12, {.layers = 20});
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  Feeder(engine.get(), script).All();
  const Counters c = engine->counters(engine->Lock());
  EXPECT_GE(c.plans, 2);
  EXPECT_EQ(c.period, 60);
}

// The same job with one allocation more, freed at once, before event `at`.
EventScript WithStray(const EventScript& job, size_t at) {
  EventScript script;
  std::map<BlockId, BlockId> ids;
  for (size_t i = 0; i < job.events().size(); ++i) {
    if (i == at) script.Free(script.Alloc(98304));
    const profiler::Event& event = job.events()[i];
    if (event.kind == profiler::EventKind::kAlloc) {
      ids[event.id] = script.Alloc(event.bytes.count(), event.stream);
    } else {
      script.Free(ids[event.id]);
    }
  }
  return script;
}

TEST(Engine, AStrayAllocationInTheRoundThatIsPlannedIsNotInThePlanForEver) {
  EventScript job;
  AppendTraining(job, 24, {.layers = 24});
  const size_t round = job.events().size() / 24;
  for (size_t at = round; at < 4 * round; at += 20) {
    const EventScript script = WithStray(job, at);
    InlineRunner runner;
    const auto engine = MakeEngine(&runner);
    Feeder feeder(engine.get(), script);
    feeder.Until(script.events().size() - 4 * round);
    const Counters before = engine->counters(engine->Lock());
    feeder.All();
    const Counters after = engine->counters(engine->Lock());
    EXPECT_EQ(after.planned_requests_after_plan - before.planned_requests_after_plan,
              after.requests_after_plan - before.requests_after_plan)
        << "stray allocation before event " << at;
    EXPECT_GT(after.planned, before.planned) << "stray allocation before event " << at;
  }
}

class CountingSink : public EventSink {
 public:
  void OnAlloc(BlockId id, Bytes, Bytes, Stream) override { live.push_back(id); }
  void OnFree(BlockId id, Stream) override { freed.push_back(id); }
  void OnPlanAdopted() override { ++adopted; }
  std::vector<BlockId> live, freed;
  int adopted = 0;
};

TEST(Engine, TheSinkHearsEveryBlockServed) {
  EventScript script;
  AppendTraining(script, 8);
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  CountingSink sink;
  engine->SetEventSink(engine->Lock(), &sink);
  Feeder(engine.get(), script).All();
  EXPECT_EQ(static_cast<int64_t>(sink.live.size()), engine->counters(engine->Lock()).requests);
  EXPECT_EQ(sink.adopted, 1);
}

// Reserved is all that is held for the job, so that it can be compared with what the job has live.
TEST(Engine, WhatLiesOutsideIsHeldToo) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  const Engine::Request request = {.bytes = Bytes(5 << 20), .alignment = Bytes(512), .place = false};
  const Bytes granule(2 << 20);
  BlockInfo outside;
  engine->Allocate(guard, request, &outside);
  engine->KeepOutside(guard, outside, Bytes(512));
  const auto placed = engine->Allocate(guard, Bytes(1 << 20), Bytes(512), kStream);
  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(engine->counters(guard).reserved, request.bytes + granule);
  EXPECT_EQ(engine->counters(guard).live_peak, request.bytes + Bytes(1 << 20));
  engine->FreeOutside(guard, outside, kStream);
  EXPECT_EQ(engine->counters(guard).reserved, granule);
  EXPECT_EQ(engine->counters(guard).reserved_peak, request.bytes + granule);
  engine->Free(guard, *placed, kStream);
}

// The lock is given up between a request that is left to the real allocator and what comes of it. A trace can
// be read only where numbers rise.
TEST(Engine, TheSinkHearsOfBlocksInTheOrderInWhichTheyBecomeLive) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  CountingSink sink;
  const Engine::Guard guard = engine->Lock();
  engine->SetEventSink(guard, &sink);
  const Engine::Request request = {.bytes = Bytes(1 << 20), .alignment = Bytes(512), .place = false};
  BlockInfo first, second, third, fourth;
  for (BlockInfo* left : {&first, &second, &third, &fourth}) engine->Allocate(guard, request, left);
  engine->KeepOutside(guard, second, Bytes(512));
  const auto again = engine->PlaceAgain(guard, request, third);
  const auto placed = engine->Allocate(guard, Bytes(1 << 20), Bytes(512), kStream);
  engine->KeepOutside(guard, first, Bytes(512));
  engine->DropOutside(guard, fourth);
  ASSERT_TRUE(again.has_value() && placed.has_value());
  ASSERT_EQ(sink.live.size(), 4u);
  for (size_t i = 1; i < sink.live.size(); ++i) EXPECT_LT(sink.live[i - 1], sink.live[i]);
  engine->FreeOutside(guard, first, kStream);
  engine->Free(guard, *placed, kStream);
  engine->Free(guard, *again, kStream);
  engine->FreeOutside(guard, second, kStream);
  EXPECT_EQ(sink.freed, std::vector(sink.live.rbegin(), sink.live.rend()));
  EXPECT_EQ(engine->counters(guard).live, Bytes(0));
}

TEST(Engine, ALockHeldElsewhereIsNotWaitedForForEver) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  const Engine::Guard guard = engine->Lock();
  bool got = true;
  std::thread([&] { got = engine->TryLockFor(std::chrono::milliseconds(1)).has_value(); }).join();
  EXPECT_FALSE(got);
}

bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end, 4) == ") S ";
}

// Nor at the cost of the processor that its holder may need: one of a lower priority would never have it.
TEST(Engine, ALockHeldElsewhereIsSleptFor) {
  InlineRunner runner;
  const auto engine = MakeEngine(&runner);
  std::optional<Engine::Guard> guard = engine->Lock();
  std::atomic<pid_t> waiting{0};
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    waiting = gettid();
    engine->TryLockFor(std::chrono::seconds(10));
    over = true;
  });
  bool asleep = false;
  while (!asleep && !over) asleep = waiting != 0 && IsAsleep(waiting);
  guard.reset();
  waiter.join();
  EXPECT_TRUE(asleep);
}

}  // namespace
}  // namespace reprise::replay
