// Why: jobs vary, and the promises hold all the same: nothing overlaps, nothing is passed, little more is
// reserved than was live, and a period is found where there is one. Each rule that is there for such jobs is
// taken away once, to show what it brings. Constants are chosen on these seeds; figures are told of others
// (varying_bench --final).
#include "tests/replay/varying_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "planner/portfolio.h"
#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/simulator.h"
#include "tests/replay/many_layers.h"
#include "tests/replay/varying_jobs.h"

namespace reprise::replay {
namespace {

using testing::IsSupersetOf;

SimulationResult Simulated(Variation variation, uint64_t seed, SimulationOptions options = {}) {
  options.plan_seconds = 0.05;
  const auto result = Simulate(MakeVaryingStream(variation, seed).events, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

double Reserved(const SimulationResult& result) {
  return Share(result.reserved_peak.count(), result.counters.live_peak.count());
}

Bytes Requested(const VaryingStream& stream) {
  Bytes sum;
  for (const profiler::Event& event : stream.events) sum += event.bytes;
  return sum;
}

class Varying : public testing::TestWithParam<Variation> {};

TEST_P(Varying, IsConsistentAndTheSameForTheSameSeed) {
  const VaryingStream stream = MakeVaryingStream(GetParam(), kTuningSeeds);
  std::set<BlockId> live;
  int64_t marks = 0;
  for (const profiler::Event& event : stream.events) {
    if (event.kind == profiler::EventKind::kMark) ++marks;
    if (event.kind == profiler::EventKind::kAlloc) {
      EXPECT_TRUE(live.insert(event.id).second);
      EXPECT_GT(event.bytes, Bytes(0));
    }
    if (event.kind == profiler::EventKind::kFree) {
      ASSERT_EQ(live.erase(event.id), 1u);
    }
  }
  EXPECT_GE(marks, 24);
  const VaryingStream again = MakeVaryingStream(GetParam(), kTuningSeeds);
  ASSERT_EQ(again.events.size(), stream.events.size());
  for (size_t i = 0; i < stream.events.size(); ++i) EXPECT_EQ(again.events[i].bytes, stream.events[i].bytes);
  EXPECT_NE(Requested(MakeVaryingStream(GetParam(), kTuningSeeds + 1)), Requested(stream));
}

TEST_P(Varying, NothingOverlapsNothingIsPassedAndLittleIsReserved) {
  const auto result = Simulated(GetParam(), kTuningSeeds);
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_EQ(result.counters.passed, 0);
  EXPECT_EQ(result.counters.planned + result.counters.arena, result.counters.requests);
  EXPECT_LE(Reserved(result), 1.05);
}

TEST_P(Varying, ItsPeriodIsFound) {
  const VaryingStream stream = MakeVaryingStream(GetParam(), kTuningSeeds);
  if (stream.periods.empty()) GTEST_SKIP() << "there is none";
  const SimulationResult result = Simulated(GetParam(), kTuningSeeds);
  if (stream.apart) {
    std::vector<size_t> planned;
    for (const Sequence::Known& plan : result.plans) planned.push_back(plan.cycle.size());
    EXPECT_THAT(planned, IsSupersetOf(stream.periods)) << "each job has a plan of its own";
    return;
  }
  const int64_t found = result.counters.period;
  // Noise adds tokens to a round.
  const bool noisy = GetParam() == Variation::kSmallNoise || GetParam() == Variation::kLargeNoise;
  const auto near = [&](int64_t period) { return std::abs(period - found) <= (noisy ? 16 : 0); };
  EXPECT_TRUE(std::any_of(stream.periods.begin(), stream.periods.end(), near)) << found;
}

INSTANTIATE_TEST_SUITE_P(Jobs, Varying, testing::ValuesIn(kVariations), [](const auto& info) {
  std::string name(NameOf(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// What two runs that differ by one rule come to, in the mean of several seeds.
struct Ablation {
  double with = 0;
  double without = 0;
};
template <typename Measure>
Ablation Ablate(Variation variation, const SimulationOptions& without, Measure measure) {
  Ablation result;
  for (uint64_t seed = kTuningSeeds; seed < kTuningSeeds + 3; ++seed) {
    result.with += measure(Simulated(variation, seed)) / 3;
    result.without += measure(Simulated(variation, seed, without)) / 3;
  }
  return result;
}
// What jobs that are not of a variation reserve over their live peak, in the mean of seeds from 1 on.
template <typename Make>
Ablation AblateJobs(uint64_t seeds, Make make, SimulationOptions with, SimulationOptions without) {
  Ablation reserved;
  with.plan_seconds = without.plan_seconds = 0.05;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<profiler::Event> events = make(seed);
    const SimulationResult kept = Simulate(events, with).value();
    EXPECT_EQ(kept.overlaps, 0);
    EXPECT_GT(kept.counters.plans, 0) << seed;
    reserved.with += Reserved(kept) / static_cast<double>(seeds);
    reserved.without += Reserved(Simulate(events, without).value()) / static_cast<double>(seeds);
  }
  return reserved;
}
double Planned(const SimulationResult& result) { return result.planned_bytes_after_plan; }
double Conflicts(const SimulationResult& result) { return static_cast<double>(result.counters.conflicts); }

TEST(Rules, PlansThatAreKeptComeBack) {
  SimulationOptions without;
  without.sequence_rules.plan_set = false;
  const Ablation planned = Ablate(Variation::kTwoJobsAtWill, without, Planned);
  EXPECT_GE(planned.with, planned.without + 0.15);
  EXPECT_GT(Simulated(Variation::kTwoJobsAtWill, kTuningSeeds).counters.plan_switches, 10);
  EXPECT_EQ(Simulated(Variation::kTwoJobsAtWill, kTuningSeeds, without).counters.plan_switches, 0);
}

TEST(Rules, ACycleThatHasChangedIsPlannedAgain) {
  SimulationOptions without;
  without.sequence_rules.replan = false;
  const Ablation planned = Ablate(Variation::kGrowth, without, Planned);
  EXPECT_GE(planned.with, planned.without + 0.2);
  EXPECT_GT(Simulated(Variation::kGrowth, kTuningSeeds).counters.plans_renewed, 0);
}

TEST(Rules, APlanIsLaidAgainAroundWhatIsInItsWay) {
  SimulationOptions without;
  without.sequence_rules.lay_again = false;
  const Ablation planned = Ablate(Variation::kTwoJobsAtWill, without, Planned);
  EXPECT_GE(planned.with, planned.without + 0.05);
}

// Each of two jobs keeps its gradients while the other has its turn.
TEST(Rules, CyclesThatTakeTurnsKeepOutOfEachOthersWay) {
  SimulationOptions without;
  without.sequence_rules.turns = false;
  const Ablation in_the_way = Ablate(Variation::kTwoJobsAtWill, without, Conflicts);
  EXPECT_LE(4 * in_the_way.with, 3 * in_the_way.without);
  const Ablation reserved = Ablate(Variation::kTwoJobsAtWill, without, Reserved);
  EXPECT_LE(reserved.with, reserved.without - 0.003);
}

TEST(Rules, ACycleThatIsLaidAgainIsAdvisedToKeepItsPlaces) {
  int advised = 0;
  Engine::Options options;
  options.plan_seconds = 0.05;
  options.solve = [&](const planner::Problem& problem, const planner::Budget& budget) {
    advised +=
        std::ranges::any_of(problem.buffers, [](const auto& buffer) { return buffer.previous.has_value(); });
    return planner::Solve(problem, budget);
  };
  InlineRunner runner;
  const auto engine =
      *Engine::Create(options, std::make_unique<CountedMemory>(Bytes(2 << 20), kLargestRange), &runner);
  const Engine::Guard guard = engine->Lock();
  std::map<BlockId, Offset> placed;
  for (const profiler::Event& event : MakeVaryingStream(Variation::kTwoJobsAtWill, kTuningSeeds).events) {
    if (event.kind == profiler::EventKind::kAlloc) {
      placed[event.id] = *engine->Allocate(guard, event.bytes, event.alignment, event.stream);
    } else if (event.kind == profiler::EventKind::kFree) {
      engine->Free(guard, placed.at(event.id), event.stream);
    }
  }
  EXPECT_GT(engine->counters(guard).plans_renewed, 0);
  EXPECT_GE(advised, engine->counters(guard).plans_renewed);
}

TEST(Rules, ASteadyJobMovesLittleOnceItsPlanHasSettled) {
  std::vector<profiler::Event> large = MakeVaryingStream(Variation::kNone, kTuningSeeds).events;
  for (profiler::Event& event : large) event.bytes = event.bytes * 16;
  SimulationOptions options;
  options.plan_seconds = 0.05;
  const auto result = Simulate(large, options);
  ASSERT_TRUE(result.ok());
  EXPECT_LT(kMiB * 2 * result->counters.granules_moved, result->counters.live_peak) << "in all of its rounds";
}

TEST(Rules, PlanningAgainIsGivenUpMoreAndMore) {
  // A plan for each of eight lengths of a sequence at most, though the job has hundreds of rounds.
  EXPECT_LE(Simulated(Variation::kGrowth, kTuningSeeds).counters.plans, 9);
}

TEST(Rules, ThePlanLendsItsMemory) {
  SimulationOptions without;
  without.arena_rules.plan_lends = false;
  without.arena_rules.plan_yields = false;  // it makes up for a part
  const Ablation reserved = Ablate(Variation::kTwoJobsAtWill, without, Reserved);
  EXPECT_LE(reserved.with, 1.05);
  EXPECT_GE(reserved.without, reserved.with + 0.05);
}

// Steps of micro-batches that are all alike, and an optimizer that allocates nothing: of a token only its number in the step
// tells in which micro-batch it is. Or the first of them has more in it than the others, as where it makes the gradients
// that they add to.
std::vector<profiler::Event> MicroBatches(int steps, int micro_batches, int64_t more_in_first = 0) {
  constexpr int64_t kLayers = 24;
  varying::Writer out(/*dice=*/nullptr);  // no noise
  const auto alloc = [&](int64_t kib) { return out.Alloc(kib << 10); };
  for (int step = 0; step < steps; ++step) {
    std::vector<BlockId> gradients;
    for (int m = 0; m < micro_batches; ++m) {
      std::vector<BlockId> activations;
      for (int64_t layer = 0; layer < kLayers; ++layer)
        activations.push_back(alloc(2000 + 64 * (layer * 7 % 11)));
      for (int64_t layer = kLayers; layer-- > 0;) {
        const BlockId gradient = alloc(800 + 64 * (layer * 5 % 13));
        m == 0 ? gradients.push_back(gradient) : out.Free(gradient);
        if (m == 0 && layer < more_in_first) out.Free(alloc(300));
        out.Free(activations[static_cast<size_t>(layer)]);
      }
    }
    out.FreeAll(gradients);
  }
  return out.TakeEvents();
}

TEST(Rules, APlanIsJoinedInTheMicroBatchThatItIs) {
  for (const int64_t behind : {0, 100, 300}) {
    SimulationOptions options;
    options.plan_seconds = 0.05;
    options.behind = behind;
    const auto result = Simulate(MicroBatches(/*steps=*/20, /*micro_batches=*/8), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counters.period, int64_t{8 * 2 * 24});
    EXPECT_GT(result->planned_bytes_after_plan, 0.99) << behind;
    EXPECT_LE(result->counters.conflicts, 10) << behind;
  }
}

// They come so often, or differ so much from the first, that they are planned before the step is over.
TEST(Rules, APlanOfAMicroBatchRestsUntilItsStepIsFound) {
  for (const auto& [micro_batches, more_in_first] : {std::pair(48, 0), std::pair(8, 12)}) {
    SimulationOptions options;
    options.plan_seconds = 0.05;
    SimulationOptions without = options;
    without.sequence_rules.rest = false;
    const std::vector<profiler::Event> events = MicroBatches(/*steps=*/20, micro_batches, more_in_first);
    const auto with = Simulate(events, options);
    const auto never_doubted = Simulate(events, without);
    ASSERT_TRUE(with.ok() && never_doubted.ok());
    EXPECT_EQ(with->overlaps, 0);
    EXPECT_EQ(with->counters.period % (micro_batches * int64_t{2 * 24} + more_in_first), 0);
    EXPECT_LE(2 * with->counters.conflicts, never_doubted->counters.conflicts) << micro_batches;
    EXPECT_LE(with->counters.conflicts, 150) << "nor is it followed while the step is being planned";
    EXPECT_LE(with->reserved_peak, never_doubted->reserved_peak) << micro_batches;
  }
}

// The optimizer makes its state, as large as the gradients, when the job's steps have been planned: behind the fifth, as a
// scaled loss overflows at first; or behind the first one, of which the micro-batches have been taken for steps, as the first
// has more in it than the others.
std::vector<profiler::Event> LateState(int steps_before, int micro_batches, int64_t gradient_kib) {
  constexpr int kSteps = 30;
  constexpr int64_t kLayers = 80;
  varying::Writer out(/*dice=*/nullptr);  // no noise
  const auto alloc = [&](int64_t kib) { return out.Alloc(kib << 10); };
  const auto gradient_of = [&](int64_t layer) { return alloc(gradient_kib + 64 * (layer * 5 % 13)); };
  for (int step = 0; step < kSteps; ++step) {
    std::vector<BlockId> gradients;
    for (int m = 0; m < micro_batches; ++m) {
      std::vector<BlockId> activations;
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        activations.push_back(alloc(6000 + 64 * (layer * 7 % 79)));
        if (step == 0 && m == 0) out.Free(alloc(500 + layer));
        out.Free(alloc(1100 + 64 * (layer * 3 % 17)));
      }
      for (int64_t layer = kLayers; layer-- > 0;) {
        const BlockId gradient = gradient_of(layer);
        out.Free(alloc(3000 + 64 * (layer * 11 % 31)));
        out.Free(activations[static_cast<size_t>(layer)]);
        m == 0 ? gradients.push_back(gradient) : out.Free(gradient);
      }
    }
    for (int64_t layer = 0; step == steps_before && layer < kLayers; ++layer) gradient_of(layer);
    out.FreeAll(gradients);
  }
  return out.TakeEvents();
}

TEST(Rules, APlanRestsWhileWhatHasComeToStayLiesInItsPlaces) {
  for (const auto& [steps_before, micro_batches, gradient_kib] :
       {std::tuple(4, 1, 900), std::tuple(0, 4, 480)}) {
    SimulationOptions options;
    options.plan_seconds = 0.05;
    const auto result = Simulate(LateState(steps_before, micro_batches, gradient_kib), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->overlaps, 0);
    EXPECT_LE(result->counters.conflicts, 10) << micro_batches;
    EXPECT_LE(Reserved(*result), 1.045) << micro_batches;
    EXPECT_GE(Planned(*result), 0.85) << "it is laid again";
  }
}

// One thread dispatches, and others let go of what has been used: some allocations later, more or fewer each time.
std::vector<profiler::Event> LateFrees(uint64_t seed, int steps) {
  varying::Dice dice(seed);
  varying::Writer out(&dice);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 60; ++i) sizes.push_back(dice.Between(2, 32) << 17);
  int64_t now = 0;
  std::multimap<int64_t, BlockId> used;
  const auto alloc = [&](int64_t bytes) {
    const auto gone = used.upper_bound(now++);
    for (auto it = used.begin(); it != gone; ++it) out.Free(it->second);
    used.erase(used.begin(), gone);
    return out.Alloc(bytes);
  };
  const auto let_go = [&](BlockId id) { used.emplace(now + dice.Between(0, 3), id); };
  for (int step = 0; step < steps; ++step) {
    std::vector<BlockId> kept;
    for (const int64_t size : sizes) {
      kept.push_back(alloc(size));
      let_go(alloc(size / 4));
    }
    for (size_t layer = sizes.size(); layer-- > 0;) {
      let_go(alloc(sizes[layer] * 3 / 4));
      let_go(kept[layer]);
    }
  }
  return out.TakeEvents();
}

TEST(Rules, APlanDoesNotRestBecauseFreesComeALittleLate) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SimulationOptions options;
    options.plan_seconds = 0.05;
    SimulationOptions without = options;
    without.sequence_rules.rest = false;
    const std::vector<profiler::Event> events = LateFrees(seed, /*steps=*/60);
    const auto with = Simulate(events, options);
    const auto never_doubted = Simulate(events, without);
    ASSERT_TRUE(with.ok() && never_doubted.ok());
    EXPECT_EQ(with->overlaps, 0);
    EXPECT_GE(Planned(*with), Planned(*never_doubted)) << seed;
  }
}

// Two threads work at the operations that are ready: behind each layer's part of the backward pass its weights' gradient
// becomes so, and which of them comes when is another thing each time. Each operation has small blocks of its own.
std::vector<profiler::Event> TwoExecutors(uint64_t seed, int steps) {
  constexpr int kLayers = 10;
  varying::Dice dice(seed);
  varying::Writer out(&dice);
  std::vector<int64_t> sizes;
  for (int i = 0; i < kLayers; ++i) sizes.push_back(dice.Between(1, 16) << 17);
  for (const int64_t size : sizes) out.Alloc(size);  // weights
  const auto operation = [&](int64_t bytes) {
    const BlockId result = out.Alloc(bytes);
    for (int i = 0; i < 4; ++i) out.Free(out.Alloc(16704));
    return result;
  };
  for (int step = 0; step < steps; ++step) {
    std::vector<BlockId> kept;
    for (const int64_t size : sizes) kept.push_back(operation(size));
    std::vector<size_t> ready;
    std::vector<BlockId> incoming;
    for (size_t layers = kLayers; layers > 0 || !ready.empty();) {
      if (!ready.empty() && (layers == 0 || dice.Chance(600))) {
        const auto which = ready.begin() + dice.Between(0, static_cast<int64_t>(ready.size()) - 1);
        const size_t layer = *which;
        ready.erase(which);
        const BlockId gradient = operation(sizes[layer] * 3 / 4);
        out.Free(out.Alloc(sizes[layer] * 3 / 4));  // of the optimizer
        out.Free(gradient);
        out.Free(kept[layer]);
      } else {
        ready.push_back(--layers);
        const BlockId next = operation(sizes[layers] / 2 + 4096);
        out.FreeAll(incoming);
        incoming.push_back(next);
      }
    }
    out.FreeAll(incoming);
  }
  return out.TakeEvents();
}

TEST(Rules, WhereAPlanDoesNotTellWhatComesNextNoPlaceIsKeptForIt) {
  SimulationOptions with;
  with.arena_rules.plan_yields = false;  // it makes up for a part
  SimulationOptions without = with;
  without.sequence_rules.keep_places = false;
  const Ablation reserved = AblateJobs(
      6, [](uint64_t seed) { return TwoExecutors(seed, 160); }, with, without);
  EXPECT_LE(reserved.with, reserved.without - 0.08) << reserved.without;
}

// Steps of a compiled function as one may see them on the host. What the compiler has left lies all over the addresses, a few
// KiB in each granule. A step is dispatched before the last one is over: each makes all weights anew, and the old ones
// go while the new ones come, some earlier and some later, and so does what the function works with.
std::vector<profiler::Event> CompiledSteps(uint64_t seed, int steps) {
  varying::Dice dice(seed);
  varying::Writer out(&dice);
  std::vector<BlockId> compiling;
  for (int i = 0; i < 800; ++i) {
    compiling.push_back(out.Alloc(dice.Between(16, 64) * 1024));
    if (i % 24 == 0) out.Alloc(8192);
  }
  out.FreeAll(compiling);
  const int weights = static_cast<int>(dice.Between(20, 40));
  std::vector<int64_t> sizes;
  for (int i = 0; i < weights; ++i) sizes.push_back(dice.Between(256, 1024) * 1024);
  const int64_t work_bytes = dice.Between(20, 40) * kMiB.count();
  std::vector<BlockId> old;
  for (const int64_t bytes : sizes) old.push_back(out.Alloc(bytes));
  std::optional<BlockId> last_work;
  for (int step = 0; step < steps; ++step) {
    const BlockId work = out.Alloc(work_bytes);
    std::vector<BlockId> made;
    size_t freed = 0;
    const auto delay = static_cast<size_t>(dice.Chance(150) ? dice.Between(1, 6) : 0);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i == delay && last_work.has_value()) out.Free(*last_work);
      made.push_back(out.Alloc(sizes[i]));
      out.Free(out.Alloc(sizes[i] / 8));
      if (i >= delay + 4) out.Free(old[freed++]);
    }
    while (freed < old.size()) out.Free(old[freed++]);
    old = std::move(made);
    last_work = work;
  }
  return out.TakeEvents();
}

TEST(Rules, WhatAPlanMakesBeHeldBeyondAllThatWasLiveIsNotKeptForIt) {
  SimulationOptions without;
  without.arena_rules.plan_yields = false;
  const Ablation reserved = AblateJobs(
      8, [](uint64_t seed) { return CompiledSteps(seed, 80); }, {}, without);
  EXPECT_LE(reserved.with, reserved.without - 0.005) << reserved.without;
}

// Steps that an evaluation interrupts before four have come again, so that their own period is not confirmed anew at once.
// With their evaluation they are one, which two ends of the period in doubt propose.
TEST(Rules, APlanThatRestsIsFollowedAgainOrGivesWayToALongerOne) {
  for (const uint64_t seed : {4, 6, 7, 20})
    EXPECT_GE(Planned(Simulated(Variation::kEvaluation, seed)), 0.84) << seed;
}

TEST(Rules, TheHostWaitsForADeviceThatIsBehind) {
  SimulationOptions waits;
  waits.behind = 300;
  SimulationOptions without = waits;
  without.arena_rules.waits = false;
  for (uint64_t seed = kTuningSeeds; seed < kTuningSeeds + 3; ++seed) {
    const SimulationResult behind = Simulated(Variation::kTwoJobsAtWill, seed, waits);
    EXPECT_EQ(behind.overlaps, 0);
    EXPECT_LE(Reserved(behind), Reserved(Simulated(Variation::kTwoJobsAtWill, seed)) + 0.01) << seed;
    EXPECT_GE(Reserved(Simulated(Variation::kTwoJobsAtWill, seed, without)), Reserved(behind) + 0.03) << seed;
    EXPECT_LE(behind.counters.host_waits, behind.counters.requests / 100) << seed;
  }
}

TEST(Varying, WhatOneStepHandsToTheNextIsPlannedWhereItLies) {
  for (uint64_t seed = kTuningSeeds + 1; seed < kTuningSeeds + 4; ++seed) {
    const SimulationResult result = Simulated(Variation::kFunctional, seed);
    EXPECT_GE(Planned(result), 0.99) << seed;
    EXPECT_LE(Reserved(result), 1.02) << seed;
    EXPECT_EQ(result.counters.conflicts, 0) << seed;
  }
}

TEST(Rules, APlansFirstCycleIsLaidAroundWhatIsLeftOfTheOneBefore) {
  SimulationOptions without;
  without.sequence_rules.first_cycle = false;
  const Ablation in_the_way = Ablate(Variation::kKeptGradients, without, Conflicts);
  EXPECT_EQ(in_the_way.with, 0);
  EXPECT_GE(in_the_way.without, 10);
  const Ablation reserved = Ablate(Variation::kKeptGradients, without, Reserved);
  EXPECT_LE(reserved.with, reserved.without - 0.003);
}

TEST(Rules, NoPlanNeedsMuchMoreInItsFirstCycleThanTheJobDidBefore) {
  const auto simulate = [](bool first_cycle, Bytes capacity) {
    SimulationOptions options;
    options.plan_seconds = 0.05;
    options.sequence_rules.first_cycle = first_cycle;
    options.capacity = capacity;
    return *Simulate(ManyLayersThatKeepGradients(), options);
  };
  const SimulationResult with = simulate(true, Bytes(0));
  EXPECT_EQ(with.counters.plans, 1);
  EXPECT_EQ(with.counters.conflicts, 0);
  EXPECT_LE(Reserved(with), 1.03);
  EXPECT_GE(Reserved(simulate(false, Bytes(0))), 1.05);
  const Bytes capacity(with.counters.live_peak.count() * 33 / 32);
  EXPECT_EQ(simulate(true, capacity).counters.passed, 0) << "what a job has that all but fills its device";
}

TEST(Rules, APlanThatWasLeftIsFollowedAgainFromAnEntryOn) {
  SimulationOptions without;
  without.sequence_rules.entries = false;
  const Ablation in_the_way = Ablate(Variation::kGeneration, without, Conflicts);
  EXPECT_LE(10 * in_the_way.with, in_the_way.without);
  const Ablation reserved = Ablate(Variation::kGeneration, without, Reserved);
  EXPECT_LE(reserved.with, reserved.without);
  EXPECT_GE(Simulated(Variation::kGeneration, kTuningSeeds + 1).planned_bytes_after_plan, 0.5);
  EXPECT_GE(Ablate(Variation::kEvaluation, without, Planned).with, 0.6) << "and followed again";
}

TEST(Rules, AMicroBatchIsHeldBackForItsStep) {
  SimulationOptions without;
  without.period_rules.hold_back = false;
  int64_t with_conflicts = 0;
  int64_t without_conflicts = 0;
  for (uint64_t seed = kTuningSeeds; seed < kTuningSeeds + 3; ++seed) {
    with_conflicts += Simulated(Variation::kMicroBatches, seed).counters.conflicts;
    without_conflicts += Simulated(Variation::kMicroBatches, seed, without).counters.conflicts;
  }
  EXPECT_LT(with_conflicts, without_conflicts);
}

}  // namespace
}  // namespace reprise::replay
