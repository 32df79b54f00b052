// Why: jobs do what no plan expects. Recorded sequences are replayed with drops, insertions, changed sizes,
// frees that come early, late and never, swapped neighbours, and two threads at once, for millions of events,
// through the whole engine over real memory. Every block carries its name at both ends from its allocation to
// its free, and a checker of its own watches the addresses: an overlap cannot stay hidden, and nothing may be
// refused.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "replay/background_runner.h"
#include "replay/engine.h"
#include "replay/host_memory.h"
#include "replay/overlap_checker.h"
#include "replay/saved_plan.h"
#include "replay/simulator.h"
#include "tests/replay/bench_streams.h"
#include "tests/replay/perturbed_job.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kEvents = 400'000;
constexpr uint64_t kSeeds = 1;
#else
constexpr int64_t kEvents = 10'000'000;
constexpr uint64_t kSeeds = 4;
#endif

// An engine over real memory, and a stamp at both ends of every block.
class StampedEngine {
 public:
  // `saved`: the plans it begins with.
  explicit StampedEngine(PlanRunner* runner, const SavedPlan& saved = {}) {
    auto memory = HostMemory::Reserve(kGiB * 16);
    EXPECT_TRUE(memory.ok()) << memory.status();
    begin_ = (*memory)->begin();
    Engine::Options options;
    options.plan_seconds = 0.05;
    auto engine = Engine::Create(options, std::move(*memory), runner);
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = std::move(*engine);
    auto plans = ToExpect(saved);
    EXPECT_TRUE(plans.ok() && engine_->Expect(engine_->Lock(), *std::move(plans)).ok()) << plans.status();
  }

  void Do(uint64_t job, const PerturbedJob::Action& action) {
    const Engine::Guard guard = engine_->Lock();
    const uint64_t name = job << 56 | action.key;
    if (action.alloc) {
      const auto offset = engine_->Allocate(guard, action.bytes, Bytes(64), action.stream);
      if (!offset.has_value()) {
        ++refused_;
        return;
      }
      checker_.OnPlaced(*offset, action.bytes);
      blocks_[name] = {*offset, action.bytes};
      Stamp(*offset, action.bytes, name);
    } else {
      const auto it = blocks_.find(name);
      if (it == blocks_.end()) return;
      const auto [offset, bytes] = it->second;
      if (!Stamped(offset, bytes, name)) ++corrupted_;
      checker_.OnFreed(offset);
      if (!engine_->Free(guard, offset, action.stream)) ++lost_;
      blocks_.erase(it);
    }
  }

  void ExpectSound() {
    const Engine::Guard guard = engine_->Lock();
    const Counters c = engine_->counters(guard);
    EXPECT_EQ(checker_.overlaps(), 0);
    EXPECT_EQ(corrupted_, 0);
    EXPECT_EQ(refused_, 0);
    EXPECT_EQ(c.passed, 0);
    EXPECT_EQ(lost_, 0);
    EXPECT_EQ(c.planned + c.arena, c.requests);
  }
  Counters counters() { return engine_->counters(engine_->Lock()); }

 private:
  char* At(Offset offset) const { return reinterpret_cast<char*>(begin_) + offset.count(); }
  void Stamp(Offset offset, Bytes bytes, uint64_t name) const {
    if (bytes.count() < 16) return;
    memcpy(At(offset), &name, 8);
    memcpy(At(offset) + bytes.count() - 8, &name, 8);
  }
  bool Stamped(Offset offset, Bytes bytes, uint64_t name) const {
    if (bytes.count() < 16) return true;
    return memcmp(At(offset), &name, 8) == 0 && memcmp(At(offset) + bytes.count() - 8, &name, 8) == 0;
  }

  uintptr_t begin_ = 0;
  std::unique_ptr<Engine> engine_;
  OverlapChecker checker_;
  absl::flat_hash_map<uint64_t, std::pair<Offset, Bytes>> blocks_;
  int64_t corrupted_ = 0;
  int64_t refused_ = 0;
  int64_t lost_ = 0;
};

// Calm, then rough, then calm: plans are adopted, broken and found again.
double RateAt(int64_t event) {
  constexpr double kRates[] = {0, 0.0005, 0.01, 0, 0.05, 0.002};
  return kRates[event / 100'000 % std::size(kRates)];
}

TEST(Perturbation, RecordedJobsWithFaultsNeverOverlapAndAreNeverRefused) {
  const std::vector<std::vector<profiler::Event>> streams = BaseStreams();
  const int64_t each = kEvents / static_cast<int64_t>(streams.size());
  int64_t planned = 0;
  for (size_t s = 0; s < streams.size(); ++s) {
    InlineRunner runner;
    StampedEngine engine(&runner);
    PerturbedJob job(streams[s], /*seed=*/s + 1);
    for (int64_t event = 0; event < each; ++event) {
      job.SetRate(RateAt(event));
      engine.Do(0, job.Next());
    }
    engine.ExpectSound();
    const Counters c = engine.counters();
    planned += c.planned;
    EXPECT_GT(c.plans, 0);
    RecordProperty("stream" + std::to_string(s), "plans " + std::to_string(c.plans) + ", planned " +
                                                     std::to_string(c.planned) + " of " +
                                                     std::to_string(c.requests));
  }
  EXPECT_GT(planned, 0);
}

TEST(Perturbation, RunsThatBeginOtherwiseThanTheOneWhosePlansTheyHave) {
  for (const std::vector<profiler::Event>& stream : BaseStreams()) {
    const auto first = Simulate(stream, {.plan_seconds = 0.05});
    ASSERT_TRUE(first.ok()) << first.status();
    const SavedPlan saved = MakeSavedPlan({}, first->plans, 0.05);
    for (const double rate : {0.0, 0.0002, 0.001, 0.005, 0.02, 0.1}) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        InlineRunner runner;
        StampedEngine engine(&runner, saved);
        PerturbedJob job(stream, seed);
        job.SetRate(rate);
        for (size_t event = 0; event < stream.size(); ++event) engine.Do(0, job.Next());
        engine.ExpectSound();
        EXPECT_TRUE(rate > 0 || engine.counters().plans_resumed == 1);
      }
    }
  }
}

TEST(Perturbation, TwoJobsInterleavedInOneEngine) {
  const std::vector<std::vector<profiler::Event>> streams = BaseStreams();
  InlineRunner runner;
  StampedEngine engine(&runner);
  PerturbedJob a(streams.front(), 11);
  PerturbedJob b(streams.back(), 12);
  std::mt19937_64 random(13);
  for (int64_t event = 0; event < kEvents / 10; ++event) {
    a.SetRate(RateAt(event));
    b.SetRate(RateAt(event));
    if (random() % 2 == 0) {
      engine.Do(0, a.Next());
    } else {
      engine.Do(1, b.Next());
    }
  }
  engine.ExpectSound();
}

TEST(Perturbation, TwoThreadsOnOneEngineWithPlanningBeside) {
  const std::vector<std::vector<profiler::Event>> streams = BaseStreams();
  BackgroundRunner runner;
  StampedEngine engine(&runner);
  std::atomic<int> waiting{2};
  const auto run = [&](uint64_t name) {
    PerturbedJob job(streams[name % streams.size()], 20 + name);
    --waiting;
    while (waiting > 0) std::this_thread::yield();
    for (int64_t event = 0; event < kEvents / 20; ++event) {
      job.SetRate(RateAt(event));
      engine.Do(name, job.Next());
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  engine.ExpectSound();
}

}  // namespace
}  // namespace reprise::replay
