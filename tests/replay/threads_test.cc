// Why: threads that allocate at once never repeat their common order, and a device planned as one would then
// be planned for nobody; threads that take turns do, and planned apart they would need the sum of their
// peaks.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/overlap_checker.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

// Feeds several scripts to one engine, each as a thread of its own.
class Threads {
 public:
  explicit Threads(Bytes reserve = kGiB * 64) {
    auto engine = Engine::Create({}, std::make_unique<CountedMemory>(Bytes(2 << 20), reserve), &runner_);
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // The next event of a script; false when there is none.
  bool Step(uint64_t thread, const EventScript& script) {
    size_t& at = at_[thread];
    if (at == script.events().size()) return false;
    const profiler::Event& event = script.events()[at++];
    const Engine::Guard guard = engine_->Lock();
    const auto key = std::make_pair(thread, event.id);
    if (event.kind == profiler::EventKind::kAlloc) {
      const Offset offset = engine_->Allocate(
          guard, {.bytes = event.bytes, .alignment = Bytes(64), .stream = event.stream, .thread = thread});
      EXPECT_NE(offset, Engine::kNowhere);
      checker_.OnPlaced(offset, event.bytes);
      placed_[key] = offset;
    } else {
      checker_.OnFreed(placed_[key]);
      engine_->Free(guard, placed_[key], event.stream);
      placed_.erase(key);
    }
    return true;
  }

  Counters counters() { return engine_->counters(engine_->Lock()); }
  int64_t overlaps() const { return checker_.overlaps(); }

 private:
  InlineRunner runner_;
  std::unique_ptr<Engine> engine_;
  OverlapChecker checker_;
  std::map<uint64_t, size_t> at_;
  std::map<std::pair<uint64_t, BlockId>, Offset> placed_;
};

// Scripts at once, in an order that is never the same twice.
void RunAtOnce(Threads& threads, std::span<const EventScript> scripts) {
  std::mt19937 random(3);
  for (bool more = true; more;) {
    more = false;
    for (size_t thread = 0; thread < scripts.size(); ++thread) {
      for (uint32_t i = 1 + random() % 40; i > 0; --i) more |= threads.Step(thread, scripts[thread]);
    }
  }
}

double PlannedShare(const Counters& counters) {
  return static_cast<double>(counters.planned_requests_after_plan) /
         static_cast<double>(counters.requests_after_plan);
}

TEST(Threads, AtOnceEachIsPlannedForItself) {
  EventScript scripts[2];
  AppendTraining(scripts[0], 60, {.layers = 12, .scale = 64 * 1024});
  AppendTraining(scripts[1], 60, {.layers = 9, .scale = 96 * 1024});
  Threads threads;
  RunAtOnce(threads, scripts);
  const Counters counters = threads.counters();
  EXPECT_EQ(counters.threads, 2);
  EXPECT_GE(counters.plans, 2);
  EXPECT_GT(PlannedShare(counters), 0.9);
  EXPECT_EQ(threads.overlaps(), 0);
}

TEST(Threads, NoThreadsPlanLiesInAnothers) {
  EventScript scripts[6];
  for (EventScript& script : scripts) AppendTraining(script, 60, {.layers = 12, .scale = 64 * 1024});
  Threads threads;
  RunAtOnce(threads, scripts);
  const Counters counters = threads.counters();
  EXPECT_EQ(counters.threads, 6);
  EXPECT_GT(PlannedShare(counters), 0.9);
  EXPECT_EQ(counters.conflicts, 0);
}

// What is said of the plans in use is not said of the device's any more, which nobody follows.
TEST(Threads, AfterTheSplitThePlansInUseAreTheThreads) {
  EventScript alone, scripts[2];
  AppendTraining(alone, 30, {.layers = 24, .scale = 512 * 1024});
  AppendTraining(scripts[0], 60, {.layers = 12, .scale = 64 * 1024});
  AppendTraining(scripts[1], 60, {.layers = 9, .scale = 96 * 1024});
  Threads threads;
  while (threads.Step(7, alone)) continue;
  const Counters before = threads.counters();
  ASSERT_EQ(before.plans, 1);
  ASSERT_EQ(before.period, 72);
  RunAtOnce(threads, scripts);
  const Counters after = threads.counters();
  ASSERT_EQ(after.threads, 3);
  EXPECT_GT(after.slab, Bytes(0));
  EXPECT_LT(after.slab * 2, before.slab) << "both jobs are much smaller than the first";
  EXPECT_LT(after.lower_bound * 2, before.lower_bound);
  EXPECT_EQ(after.period, 36) << "of the larger one";
  EXPECT_GE(after.iterations, before.iterations);
}

TEST(Threads, InTurnsAllArePlannedTogether) {
  EventScript forward, backward;
  AppendTraining(forward, 60, {.layers = 8});
  AppendTraining(backward, 60, {.layers = 5});
  Threads threads;
  bool more = true;
  while (more) {  // the same order in every round: so many events of one, so many of the other
    more = false;
    for (size_t i = 0; i < 16 + 8 * 6; ++i) more |= threads.Step(1, forward);
    for (size_t i = 0; i < 10 + 5 * 6; ++i) more |= threads.Step(2, backward);
  }
  const Counters counters = threads.counters();
  EXPECT_EQ(counters.threads, 0);
  EXPECT_GT(PlannedShare(counters), 0.9);
  EXPECT_EQ(threads.overlaps(), 0);
}

// A helper has done many rounds before the job has done one: what it does alone is not what the device does.
TEST(Threads, AHelperThatRepeatsDoesNotSplitTheDevice) {
  constexpr int kSteps = 20, kBlocks = 240, kHelps = 12, kHelperBlocks = 10;
  for (const bool repeats : {true, false}) {
    EventScript job, helper;
    std::mt19937 random(3);
    for (int step = 0; step < kSteps; ++step) {
      if (repeats) random.seed(3);
      std::vector<BlockId> blocks;
      for (int i = 0; i < kBlocks; ++i) blocks.push_back(job.Alloc((1 + random() % 64) * 65536));
      for (const BlockId block : blocks) job.Free(block);
      for (int round = 0; round < kHelps; ++round) {
        blocks.clear();
        for (int i = 0; i < kHelperBlocks; ++i) blocks.push_back(helper.Alloc((2 + i) * 160000));
        for (const BlockId block : blocks) helper.Free(block);
      }
    }
    Threads threads;
    for (int i = 0; i < kSteps * kHelps; ++i) {
      for (int event = 0; event < 2 * kBlocks / kHelps; ++event) threads.Step(1, job);
      for (int event = 0; event < 2 * kHelperBlocks; ++event) threads.Step(2, helper);
    }
    const Counters counters = threads.counters();
    EXPECT_EQ(counters.threads, 0);
    if (repeats) {
      EXPECT_GT(PlannedShare(counters), 0.99);
    }
    EXPECT_EQ(threads.overlaps(), 0);
  }
}

// Sizes that change again and again need new plans, and addresses come to an end.
TEST(Threads, PlansOfTheirOwnTakeTheAddressesOfOldOnes) {
  EventScript scripts[2];
  for (int round = 0; round < 12 * 20; ++round) {
    const int phase = round / 20;
    for (const int thread : {0, 1}) {
      std::vector<BlockId> blocks;
      for (int i = 0; i < 20; ++i)
        blocks.push_back(scripts[thread].Alloc((40 + (i + thread) * 7 % 20 + phase) * 8192));
      for (const BlockId block : blocks) scripts[thread].Free(block);
    }
  }
  Threads threads(kMiB * 64);
  RunAtOnce(threads, scripts);
  const Counters counters = threads.counters();
  EXPECT_EQ(counters.threads, 2);
  EXPECT_GE(counters.plans, 6);
  EXPECT_EQ(counters.plans_failed, 0);
  EXPECT_LT(counters.plan_needs, counters.live_peak * 2);
  EXPECT_EQ(threads.overlaps(), 0);
}

// A job may begin new threads all the time.
TEST(Threads, ThreadsThatHaveEndedMakeRoomForOthers) {
  constexpr int kGenerations = 50;
  Threads threads(kGiB * 256);
  std::vector<EventScript> scripts(2 * kGenerations);
  double share = 0;
  for (int generation = 0; generation < kGenerations; ++generation) {
    const uint64_t first = 2 * static_cast<uint64_t>(generation);
    AppendTraining(scripts[first], 60, {.layers = 12, .scale = 8 * 1024});
    AppendTraining(scripts[first + 1], 60, {.layers = 9, .scale = 12 * 1024});
    const Counters before = threads.counters();
    std::mt19937 random(3);
    for (bool more = true; more;) {
      more = false;
      for (const uint64_t thread : {first, first + 1}) {
        for (uint32_t i = 1 + random() % 40; i > 0; --i) more |= threads.Step(thread, scripts[thread]);
      }
    }
    const Counters after = threads.counters();
    share = static_cast<double>(after.planned - before.planned) /
            static_cast<double>(after.requests - before.requests);
  }
  EXPECT_GT(share, 0.3) << "of the last two";
  EXPECT_EQ(threads.overlaps(), 0);
}

TEST(Threads, AnotherJobAsLongAsTheFirstIsPlannedAnew) {
  EventScript script;
  AppendTraining(script, 30, {.layers = 10, .scale = 64 * 1024});
  AppendTraining(script, 60, {.layers = 10, .scale = 80 * 1024});
  Threads threads;
  while (threads.Step(1, script)) continue;
  const Counters counters = threads.counters();
  EXPECT_EQ(counters.threads, 0);
  EXPECT_GE(counters.plans, 2);
  EXPECT_GT(PlannedShare(counters), 0.9);
}

}  // namespace
}  // namespace reprise::replay
