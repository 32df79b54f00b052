// Why: a plan of another run is advice from a stranger. It must place the same job from its first recurring
// iteration, and whatever else a file holds must be refused with the reason and harm nothing.
#include "replay/saved_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fnv1a.h"
#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/overlap_checker.h"
#include "replay/simulator.h"
#include "tests/replay/many_layers.h"
#include "tests/replay/training_job.h"
#include "tests/replay/varying_streams.h"

namespace reprise::replay {
namespace {

using testing::HasSubstr;

JobSignature Job() { return {.command = {"python", "train.py"}, .device = "host"}; }

// Three blocks of a cycle, of which the second outlives the round and the last never ends.
SavedPlan Small() {
  SavedPlan::Cycle cycle;
  const auto add = [&](int64_t bytes, int64_t length, int64_t offset, bool persistent = false) {
    cycle.slots.push_back({.bytes = Bytes(bytes),
                           .alignment = Bytes(64),
                           .begin = static_cast<int64_t>(cycle.slots.size()),
                           .length = length,
                           .persistent = persistent});
    cycle.offsets.emplace_back(offset);
  };
  add(8192, 1, 0);
  add(4096, 3, 8192);
  add(8192, 1, 0);
  add(4096, 4, -1, true);
  cycle.slab = Bytes(12288);
  cycle.lower_bound = Bytes(12288);
  cycle.from = Tick(7);
  cycle.cut = Tick(9);
  cycle.stays = {{Tick(2), Bytes(4096)}, {Tick(5), Bytes(20000)}};
  return {.job = Job(), .cycles = {cycle}};
}

TEST(SavedPlan, SurvivesItsFile) {
  const auto read = ParseSavedPlan(FormatSavedPlan(Small()), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(CheckIsFor(*read, Job()).ok());
  ASSERT_EQ(read->cycles.size(), 1);
  EXPECT_EQ(read->cycles[0].offsets, Small().cycles[0].offsets);
  EXPECT_EQ(read->cycles[0].from, Tick(7));
  EXPECT_EQ(read->cycles[0].cut, Tick(9));
  EXPECT_EQ(read->cycles[0].slots[1].length, 3);
  EXPECT_TRUE(read->cycles[0].slots[3].persistent);
  ASSERT_EQ(read->cycles[0].stays.size(), 2);
  EXPECT_EQ(read->cycles[0].stays[1].token, Tick(5));
  EXPECT_EQ(read->cycles[0].stays[1].bytes, Bytes(20000));
  EXPECT_EQ(FormatSavedPlan(*read), FormatSavedPlan(Small()));
  const auto plan = ToServe(read->cycles[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->end, Offset(12288));
  EXPECT_FALSE(plan->slots[3].planned());
}

// On the largest devices, of many streams; and hardly more than that, because of what else such a file could hold.
TEST(SavedPlan, AFileMayHoldTheLongestCycleThatIsFound) {
  const int64_t longest = profiler::PeriodFinder::Options().max_tokens / 2;
  SavedPlan plan = Small();
  const auto bytes = [&] { return static_cast<int64_t>(FormatSavedPlan(plan).size()); };
  const int64_t before = bytes();
  plan.cycles[0].slots.push_back({.bytes = Bytes(int64_t{1} << 36),
                                  .alignment = Bytes(512),
                                  .stream = Stream{63},
                                  .length = longest,
                                  .freed_on = Stream{63}});
  plan.cycles[0].offsets.emplace_back(int64_t{1} << 37);
  const int64_t needs = (bytes() - before) * longest;
  EXPECT_GE(kMostPlanBytes, needs);
  EXPECT_LT(kMostPlanBytes, needs * 2);
}

TEST(SavedPlan, KnowsWhichPlacesGoToAnotherStream) {
  SavedPlan::Cycle cycle = Small().cycles[0];
  cycle.slots[2].stream = cycle.slots[2].freed_on = Stream{1};
  const auto plan = ToServe(cycle);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->slots[0].crosses);
  EXPECT_FALSE(plan->slots[1].crosses);
  EXPECT_TRUE(plan->slots[2].crosses) << "in the next round";
}

TEST(SavedPlan, IsForOneJob) {
  const auto reason = [](auto change) {
    JobSignature job = Job();
    change(job);
    return std::string(CheckIsFor(Small(), job).message());
  };
  EXPECT_THAT(reason([](JobSignature& job) { job.command[1] = "other.py"; }), HasSubstr("other.py"));
  EXPECT_THAT(reason([](JobSignature& job) { job.command.push_back("--batch=8"); }), HasSubstr("--batch=8"));
  EXPECT_THAT(reason([](JobSignature& job) { job.device = "H100"; }), HasSubstr("H100"));
  EXPECT_THAT(reason([](JobSignature& job) { job.ordinal = 1; }), HasSubstr("device number"));
  EXPECT_THAT(reason([](JobSignature& job) { job.world_size = 8; }), HasSubstr("8"));
}

TEST(SavedPlan, OfAJobThatIsNotKnownIsForNone) {
  SavedPlan plan = Small();
  plan.job.command.clear();
  EXPECT_THAT(CheckIsFor(plan, plan.job).message(), HasSubstr("not known"));
}

TEST(SavedPlan, AWordOfTheCommandMayBeAnyBytes) {
  SavedPlan plan = Small();
  for (int byte = 1; byte < 256; ++byte) plan.job.command.emplace_back(1, static_cast<char>(byte));
  plan.job.command.insert(plan.job.command.end(), {"", "--data=caf\xe9", "--data=caf\xc3\xa9"});
  const auto read = ParseSavedPlan(FormatSavedPlan(plan), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job.command, plan.job.command);
  EXPECT_TRUE(CheckIsFor(*read, plan.job).ok());
}

TEST(SavedPlan, OneNameAJob) {
  JobSignature other = Job();
  other.command = {"python train.py"};
  EXPECT_EQ(HashOf(Job()), HashOf(Job()));
  EXPECT_NE(HashOf(Job()), HashOf(other)) << "one word is not two";
  const auto changed = [](auto change) {
    JobSignature job = Job();
    change(job);
    return HashOf(job);
  };
  EXPECT_NE(HashOf(Job()), changed([](JobSignature& job) { job.device = "H100"; }));
  EXPECT_NE(HashOf(Job()), changed([](JobSignature& job) { job.ordinal = 1; }));
  EXPECT_NE(HashOf(Job()), changed([](JobSignature& job) { job.world_size = 8; }));
}

TEST(SavedPlan, CutShortAnywhereIsRefused) {
  const std::string text = FormatSavedPlan(Small());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseSavedPlan(text.substr(0, size), "a.json").ok()) << size;
  }
}

TEST(SavedPlan, DamagedAnywhereIsRefused) {
  const std::string text = FormatSavedPlan(Small());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] ^= 1;
    EXPECT_FALSE(ParseSavedPlan(damaged, "a.json").ok()) << at;
  }
}

// With a checksum that is right, so that the content is looked at.
std::string Changed(std::string_view what, std::string_view into) {
  SavedPlan plan = Small();
  plan.job.command = {"@"};
  const std::string text = FormatSavedPlan(plan);
  std::string rest = text.substr(text.find(',') + 1);
  const size_t at = rest.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  rest.replace(at, what.size(), into);
  return fmt::format("{{\"checksum\":\"{:016x}\",{}", Fnv1a(rest), rest);
}

TEST(SavedPlan, HostileContentIsRefusedWithTheReason) {
  const auto reason = [](std::string_view what, std::string_view into) {
    return std::string(ParseSavedPlan(Changed(what, into), "a.json").status().message());
  };
  EXPECT_EQ(reason("\"@\"", "\"@\""), "");
  EXPECT_THAT(reason("\"version\":1", "\"version\":2"), HasSubstr("version"));
  EXPECT_THAT(reason("[8192,64", "[-1,64"), HasSubstr("bytes"));
  EXPECT_THAT(reason("[8192,64", "[0,64"), HasSubstr("bytes")) << "it could hide blocks that overlap";
  EXPECT_THAT(reason("[8192,64", "[4095,64"), HasSubstr("bytes")) << "it is planned in no job";
  EXPECT_THAT(reason("[8192,64", "[1099511627776,64"), HasSubstr("bytes")) << "no range is as large";
  EXPECT_THAT(reason("[8192,64", "[18446744073709551615,64"), HasSubstr("bytes"));
  EXPECT_THAT(reason("[8192,64", "[8192,63"), HasSubstr("power of two"));
  EXPECT_THAT(reason("[8192,64,0,1,0,0]", "[8192,64,0,9,0,0]"), HasSubstr("lifetime"));
  EXPECT_THAT(reason("[8192,64,0,1,0,0]", "[8192,64,0,1,0]"), HasSubstr("six numbers"));
  EXPECT_THAT(reason("[8192,64,0,1,0,0]", "7"), HasSubstr("six numbers"));
  EXPECT_THAT(reason("\"stays\"", "\"other\""), HasSubstr("stays")) << "a file of before it was kept";
  EXPECT_THAT(reason("\"cut\":9", "\"cut\":6"), HasSubstr("cut")) << "not before the cycle began";
  EXPECT_THAT(reason("[2,4096]", "[2]"), HasSubstr("two numbers"));
  EXPECT_THAT(reason("[2,4096]", "7"), HasSubstr("two numbers"));
  EXPECT_THAT(reason("[2,4096]", "[2,4095]"), HasSubstr("bytes"));
  EXPECT_THAT(reason("[2,4096]", "[-1,4096]"), HasSubstr("token"));
  EXPECT_THAT(reason("[2,4096]", "[5,4096]"), HasSubstr("token")) << "twice the same";
  EXPECT_THAT(reason("\"cycles\":[", "\"cycles\":7,\"x\":["), HasSubstr("cycles"));
  EXPECT_THAT(reason("\"device\":\"host\"", "\"device\":3"), HasSubstr("device"));
  EXPECT_THAT(reason("\"@\"", "7"), HasSubstr("word"));
  EXPECT_THAT(reason("\"@\"", "\"\u0100\""), HasSubstr("word"));
  EXPECT_THAT(reason("\"@\"", "\"\xff\""), HasSubstr("JSON"));
  EXPECT_THAT(reason("{", "["), HasSubstr("JSON"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(reason("[8192,64,0,1,0,0]", deep), HasSubstr("six numbers"));
}

TEST(SavedPlan, PlacesThatOverlapAreRefused) {
  SavedPlan plan = Small();
  plan.cycles[0].offsets[1] = Offset(4096);
  EXPECT_TRUE(ParseSavedPlan(FormatSavedPlan(plan), "a.json").ok());
  EXPECT_THAT(std::string(ToServe(plan.cycles[0]).status().message()), HasSubstr("overlap"));
  plan.cycles[0].offsets[1] = Offset(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(ToServe(plan.cycles[0]).status()));
}

TEST(SavedPlan, OneForAnotherArenaIsRefused) {
  InlineRunner runner;
  auto engine = Engine::Create({}, std::make_unique<CountedMemory>(Bytes(2 << 20), Bytes(64 << 20)), &runner);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const Engine::Guard guard = (*engine)->Lock();
  ServingPlan plan = *ToServe(Small().cycles[0]);
  EXPECT_TRUE(absl::IsOutOfRange((*engine)->Expect(guard, {{plan, Tick(0)}}))) << "four slots are no cycle";
  while (plan.slots.size() < 8) {
    plan.slots.push_back(plan.slots.front());
    plan.cycle.push_back(plan.cycle.front());
  }
  plan.end = Offset(int64_t{1} << 40);
  EXPECT_TRUE(absl::IsOutOfRange((*engine)->Expect(guard, {{plan, Tick(0)}})));
  ServingPlan good = plan;
  good.end = Offset(12288);
  EXPECT_FALSE((*engine)->Expect(guard, {{good, Tick(0)}, {plan, Tick(0)}}).ok());
  EXPECT_TRUE((*engine)->KnownPlans(guard).empty()) << "all or none";
  EXPECT_TRUE((*engine)->Expect(guard, {{good, Tick(0)}}).ok());
}

struct Outcome {
  Counters counters;
  std::vector<Sequence::Known> known;
  int64_t overlaps = 0;
};

// One run of the job, with the plans of another.
Outcome Run(const std::vector<profiler::Event>& events, const SavedPlan& saved) {
  InlineRunner runner;
  auto memory = std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64);
  Engine::Options options;
  options.plan_seconds = 0.2;
  options.solve = SolveByWork;
  auto engine = Engine::Create(options, std::move(memory), &runner);
  EXPECT_TRUE(engine.ok()) << engine.status();
  const Engine::Guard guard = (*engine)->Lock();
  auto plans = ToExpect(saved);
  EXPECT_TRUE(plans.ok() && (*engine)->Expect(guard, *std::move(plans)).ok()) << plans.status();
  OverlapChecker checker;
  std::map<BlockId, Offset> placed;
  for (const profiler::Event& event : events) {
    if (event.kind == profiler::EventKind::kAlloc) {
      const auto offset = (*engine)->Allocate(guard, event.bytes, Bytes(64), event.stream);
      if (!offset) continue;
      checker.OnPlaced(*offset, event.bytes);
      placed[event.id] = *offset;
    } else if (const auto it = placed.find(event.id); it != placed.end()) {
      checker.OnFreed(it->second);
      (*engine)->Free(guard, it->second, event.stream);
      placed.erase(it);
    }
  }
  return {(*engine)->counters(guard), (*engine)->KnownPlans(guard), checker.overlaps()};
}

Counters RunWith(const SavedPlan& saved, const std::vector<profiler::Event>& events) {
  const Outcome outcome = Run(events, saved);
  EXPECT_EQ(outcome.overlaps, 0);
  return outcome.counters;
}

// The plans that a run has learnt, as a file holds them.
SavedPlan LearntFrom(const std::vector<profiler::Event>& events) {
  const SavedPlan saved = MakeSavedPlan(Job(), Run(events, {}).known, 1.0);
  const auto read = ParseSavedPlan(FormatSavedPlan(saved), "a.json");
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : SavedPlan();
}

std::vector<profiler::Event> Training(int iterations, TrainingShape shape = {}) {
  EventScript script;
  TrainingJob(&script, shape).Iterate(iterations);
  return script.events();
}

TEST(SavedPlan, PlacesTheNextRunFromItsFirstRecurringIteration) {
  const auto events = Training(30);
  const SavedPlan saved = LearntFrom(events);
  ASSERT_EQ(saved.cycles.size(), 1);
  const Counters without = RunWith({.job = Job()}, events);
  const Counters with = RunWith(saved, events);
  EXPECT_EQ(with.plans_resumed, 1);
  EXPECT_EQ(with.plans, 1) << "there was nothing to plan again";
  EXPECT_EQ(with.conflicts, 0);
  // The first iteration creates the optimizer's state; the second is the first that recurs.
  const auto requests = [](int iterations) {
    const auto events = Training(iterations);
    return std::count_if(events.begin(), events.end(),
                         [](const profiler::Event& e) { return e.kind == profiler::EventKind::kAlloc; });
  };
  EXPECT_LE(with.first_planned_request, requests(1) + (requests(2) - requests(1)) / 4);
  EXPECT_GT(without.first_planned_request, requests(3));
  EXPECT_GT(with.planned, without.planned);
  EXPECT_EQ(with.planned_bytes_after_plan, with.bytes_after_plan);
  // Of weights and of the optimizer's state its plan knows nothing; the job holds them all the same.
  EXPECT_NEAR(Share(with.lower_bound.count(), without.lower_bound.count()), 1, 0.02);
  EXPECT_NEAR(Share(with.slab.count(), without.slab.count()), 1, 0.02);
}

double ReservedShare(const Counters& counters) {
  return Share(counters.reserved_peak.count(), counters.live_peak.count());
}

TEST(SavedPlan, WhatStaysOfTheStartIsNotScatteredOverWhatItsFirstStepTook) {
  const auto events = ManyLayersThatKeepGradients();
  const SavedPlan saved = LearntFrom(events);
  ASSERT_EQ(saved.cycles.size(), 1);
  const Counters first = RunWith({.job = Job()}, events);
  const Counters second = RunWith(saved, events);
  EXPECT_EQ(second.plans_resumed, 1);
  EXPECT_EQ(second.plans, 1);
  EXPECT_LT(second.first_planned_request, first.first_planned_request / 2);
  EXPECT_GE(Share(second.planned_bytes_after_plan.count(), second.bytes_after_plan.count()), 0.99);
  EXPECT_EQ(second.conflicts, 0);
  EXPECT_LE(ReservedShare(second), 1.01);
  SavedPlan not_known = saved;
  not_known.cycles[0].stays.clear();
  EXPECT_GE(ReservedShare(RunWith(not_known, events)), 1.045);
}

// In a cycle of several steps the first one's blocks are found in no one place.
TEST(SavedPlan, WhatTheFirstStepOfACycleOfManyHasLeftIsOutOfTheWayInTime) {
  const auto events = ManyLayersThatKeepGradients(100, 40, 4);
  const SavedPlan saved = LearntFrom(events);
  ASSERT_FALSE(saved.cycles.empty());
  const Counters second = RunWith(saved, events);
  EXPECT_EQ(second.plans_resumed, 1);
  EXPECT_GE(Share(second.planned_bytes_after_plan.count(), second.bytes_after_plan.count()), 0.99);
  EXPECT_EQ(second.conflicts, 0);
  EXPECT_LE(ReservedShare(second), 1.03);
}

// Memory had run out for it, and another thread's block came before it was asked for again.
TEST(SavedPlan, WhatIsPlacedLaterIsStillTheBlockThatItWas) {
  const SavedPlan saved = LearntFrom(ManyLayersThatKeepGradients());
  ASSERT_EQ(saved.cycles.size(), 1);
  const auto& stays = saved.cycles[0].stays;
  ASSERT_GT(stays.size(), 1u);
  ASSERT_EQ(stays[1].token, Tick(1));
  ASSERT_NE(stays[0].bytes, stays[1].bytes);
  InlineRunner runner;
  auto engine = Engine::Create({}, std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64), &runner);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const Engine::Guard guard = (*engine)->Lock();
  auto plans = ToExpect(saved);
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_TRUE((*engine)->Expect(guard, *std::move(plans)).ok());
  const Offset end = ToServe(saved.cycles[0])->end;
  BlockInfo left;
  EXPECT_EQ((*engine)->Allocate(guard, {.bytes = stays[0].bytes, .place = false}, &left), Engine::kNowhere);
  EXPECT_GE(*(*engine)->Allocate(guard, stays[1].bytes, Bytes(64), Stream{}), end);
  EXPECT_GE(*(*engine)->PlaceAgain(guard, {.bytes = stays[0].bytes}, left), end);
  EXPECT_EQ((*engine)->KnownPlans(guard).size(), 1u);
}

// What it has more of may be anywhere: a checkpoint, data, what is compiled. Followed all the same, the plan would have
// what stays in its way.
TEST(SavedPlan, OfAJobThatBeginsOtherwiseIsForgotten) {
  const auto events = ManyLayersThatKeepGradients();
  const SavedPlan saved = LearntFrom(events);
  ASSERT_EQ(saved.cycles.size(), 1);
  std::vector<profiler::Event> others;
  for (uint64_t i = 0; i < 100; ++i) {
    const BlockId id{i + (uint64_t{1} << 32)};
    others.push_back({.kind = profiler::EventKind::kAlloc, .id = id, .bytes = kKiB * (8 + i)});
    others.push_back({.kind = profiler::EventKind::kFree, .id = id});
  }
  others.insert(others.end(), events.begin(), events.end());
  const Counters without = RunWith({.job = Job()}, others);
  const Counters with = RunWith(saved, others);
  EXPECT_EQ(with.plans_resumed, 0);
  EXPECT_EQ(with.plans, without.plans);
  EXPECT_EQ(with.first_planned_request, without.first_planned_request);
  EXPECT_LE(ReservedShare(with), ReservedShare(without) + 0.001);
}

// Each of its plans has a start of its own, and the later one's is not over when the first is followed.
TEST(SavedPlan, OfSeveralWhatStaysBeforeALaterOneIsKeptOutOfItToo) {
  EventScript script;
  TrainingJob(&script, {.layers = 9, .scale = 48 * 1024, .state = false}).Iterate(20);
  TrainingJob(&script).Iterate(20);
  const SavedPlan saved = LearntFrom(script.events());
  ASSERT_EQ(saved.cycles.size(), 2);
  const Counters with = RunWith(saved, script.events());
  EXPECT_EQ(with.plans_resumed, 2);
  EXPECT_LE(with.conflicts, 45) << "70 where it settles in its range";
}

TEST(SavedPlan, WhatStaysOfTheStartIsHandedOnToTheRunAfterTheNext) {
  const auto events = ManyLayersThatKeepGradients();
  const SavedPlan saved = LearntFrom(events);
  ASSERT_EQ(saved.cycles.size(), 1);
  const SavedPlan again = MakeSavedPlan(Job(), replay::Run(events, saved).known, 1.0);
  ASSERT_EQ(again.cycles.size(), 1);
  ASSERT_GT(saved.cycles[0].stays.size(), 0u);
  ASSERT_EQ(again.cycles[0].stays.size(), saved.cycles[0].stays.size());
  for (size_t i = 0; i < again.cycles[0].stays.size(); ++i)
    EXPECT_EQ(again.cycles[0].stays[i].token, saved.cycles[0].stays[i].token);
}

TEST(SavedPlan, OfSeveralRoundsIsOfOnePeriod) {
  const VaryingStream stream = MakeVaryingStream(Variation::kFunctional, kTuningSeeds);
  const SavedPlan saved = LearntFrom(stream.events);
  ASSERT_FALSE(saved.cycles.empty());
  EXPECT_EQ(saved.cycles[0].slots.size() % static_cast<size_t>(stream.periods[0]), 0u);
  EXPECT_GT(saved.cycles[0].slots.size(), static_cast<size_t>(stream.periods[0]));
  const Counters without = RunWith({.job = Job()}, stream.events);
  const Counters with = RunWith({.job = Job(), .cycles = {saved.cycles[0]}}, stream.events);
  EXPECT_EQ(with.plans_resumed, 1);
  EXPECT_EQ(with.plans, 1) << "its period is known: there was nothing to plan again";
  EXPECT_LT(with.first_planned_request, without.first_planned_request);
  EXPECT_GT(with.planned, without.planned);
}

// What a step leaves behind for ever has no lifetime, however many rounds the plan has.
TEST(SavedPlan, OfSeveralRoundsIsOfOnePeriodBesideWhatIsNeverFreed) {
  std::vector<profiler::Event> events;
  uint64_t left = uint64_t{1} << 32;
  for (const profiler::Event& event : MakeVaryingStream(Variation::kFunctional, kTuningSeeds).events) {
    if (event.kind == profiler::EventKind::kMark)
      events.push_back({.kind = profiler::EventKind::kAlloc, .id = BlockId{left++}, .bytes = kKiB * 24});
    else
      events.push_back(event);
  }
  const SavedPlan saved = LearntFrom(events);
  ASSERT_FALSE(saved.cycles.empty());
  const auto& slots = saved.cycles[0].slots;
  ASSERT_TRUE(std::ranges::any_of(slots, &profiler::Slot::persistent));
  const Counters with = RunWith({.job = Job(), .cycles = {saved.cycles[0]}}, events);
  EXPECT_EQ(with.plans_resumed, 1);
  EXPECT_EQ(with.plans, 1) << "there was nothing to plan again";
}

// A start that is never the same twice: threads that compile, between the weights and a first step that leaves nothing.
TEST(SavedPlan, IsFollowedAfterALongerStart) {
  const auto job = [](int start) {
    EventScript script;
    TrainingJob training(&script, {.state = false});
    for (int i = 0; i < start; ++i) script.Free(script.Alloc(4096 + 512 * (i * i % 1009)));
    training.Iterate(20);
    return script.events();
  };
  const SavedPlan saved = LearntFrom(job(2000));
  ASSERT_EQ(saved.cycles.size(), 1);
  EXPECT_EQ(RunWith(saved, job(2200)).plans_resumed, 1);
  EXPECT_EQ(RunWith(saved, job(3000)).plans_resumed, 0) << "by then it is another job";
}

TEST(SavedPlan, OfAnotherJobIsNeverFollowed) {
  const SavedPlan saved = LearntFrom(Training(30, {.layers = 20, .scale = 96 * 1024}));
  ASSERT_EQ(saved.cycles.size(), 1);
  const auto events = Training(30);
  const Counters without = RunWith({.job = Job()}, events);
  const Counters with = RunWith(saved, events);
  EXPECT_EQ(with.plans_resumed, 0);
  EXPECT_EQ(with.plans, without.plans);
  EXPECT_EQ(with.passed, 0);
  EXPECT_EQ(with.conflicts, without.conflicts);
  EXPECT_EQ(with.live, without.live);
}

}  // namespace
}  // namespace reprise::replay
