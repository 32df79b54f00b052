// Why: where the process is short of memory for a moment, the core catches that, serves nothing more (unless it was for a plan
// alone), and still takes back what it has served. What it then works on, and destroys at the end, must be as whole as before.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recorder.h"
#include "replay/background_runner.h"
#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/planning.h"
#include "replay/saved_plan.h"
#include "replay/simulator.h"
#include "replay/stream_order.h"
#include "tests/replay/many_layers.h"
#include "tests/replay/training_job.h"

namespace {

// How many more allocations succeed before one fails; negative: all do.
int64_t before_failure = -1;
// Whether all fail that are not the test's own thread's.
std::atomic<bool> others_fail = false;
const pthread_t tests_thread = pthread_self();

}  // namespace

// Out of line: the compiler takes new and malloc for no match where it sees one at a time.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (others_fail && pthread_self() != tests_thread) throw std::bad_alloc();
  if (before_failure >= 0 && before_failure-- == 0) throw std::bad_alloc();
  if (void* const memory = malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace reprise::replay {
namespace {

// Whether the run of `work` met the allocation that fails.
template <typename Work>
bool Fails(int64_t after, Work work) {
  before_failure = after;
  bool thrown = false;
  try {
    work();
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  const bool met = before_failure < 0;
  before_failure = -1;
  return thrown || met;
}

// The planner catches for itself, and uses what it has.
absl::StatusOr<planner::Solution> SolveAsEver(const planner::Problem& problem,
                                              const planner::Budget& budget) {
  const int64_t left = std::exchange(before_failure, -1);
  planner::Budget little = budget;
  little.steps = 1;
  auto solution = planner::Solve(problem, little);
  before_failure = left;
  return solution;
}

// Of streams whose work is never complete.
class NeverComplete : public StreamEvents {
 public:
  Event Record(Stream) override { return nullptr; }
  bool Wait(Stream, Event) override { return true; }
  bool Complete(Event) override { return false; }
  void Recycle(Stream, Event) override {}
};

TEST(NoMemory, FreesThatCannotBeMarkedSpoilNoOthers) {
  constexpr uint32_t kFrees = 400;
  for (const uint32_t apart : {1, 2}) {
    int failures = 0;
    for (uint32_t failing = 0; failing < kFrees; ++failing) {
      NeverComplete events;
      StreamOrder order(1 << 20, 13, &events);
      order.Ask(0, 1, Stream{0});
      order.Ask(0, 1, Stream{1});
      bool marked[kFrees] = {};
      for (uint32_t i = 0; i < kFrees; ++i) {
        const uint32_t at = i * apart;
        const bool failed = Fails(i == failing ? 0 : -1, [&] {
          order.Freed(at, at + 1, Stream{0}, false);
          marked[i] = true;
        });
        failures += i == failing && failed;
      }
      for (uint32_t i = 0; i < kFrees; ++i) {
        const StreamOrder::Answer answer = order.Ask(i * apart, i * apart + 1, Stream{1});
        ASSERT_EQ(answer.reuse == StreamOrder::Reuse::kNotYet, marked[i]) << i << " after " << failing;
      }
    }
    EXPECT_GT(failures, 0);
  }
}

TEST(NoMemory, APlanFailsWhateverItLacked) {
  profiler::Iteration iteration;
  iteration.period = 60;
  for (int i = 0; i < 60; ++i) {
    iteration.slots.push_back({.bytes = Bytes(4096 * (1 + i * 7 % 31)),
                               .alignment = Bytes(512),
                               .stream = Stream{static_cast<uint64_t>(i % 2)},
                               .begin = i,
                               .length = 1 + i % 17,
                               .freed_on = Stream{static_cast<uint64_t>(i % 2)}});
  }
  const PlanRequest request = MakeRequest(iteration, {});
  int64_t failures = 0;
  const auto plan = [&] {
    Candidate candidate;
    Plan(request, 1.0, candidate, SolveAsEver);
    EXPECT_TRUE(candidate.ready);
    EXPECT_EQ(candidate.status.ok(), before_failure >= 0) << "after " << failures;
  };
  while (Fails(failures, plan)) ++failures;
  EXPECT_GT(failures, 100);
}

TEST(NoMemory, PlansThatCannotBeWrittenOrReadEndNothing) {
  profiler::Slot slot;
  slot.bytes = Bytes(8192);
  slot.alignment = Bytes(512);
  slot.length = 1;
  SavedPlan saved = {.job = {.command = {"python3", "train.py"}, .device = "host"}};
  saved.cycles.push_back({.slots = {slot, slot}, .offsets = {Offset(0), Offset(8192)}});
  const std::string text = FormatSavedPlan(saved);
  ASSERT_TRUE(ParseSavedPlan(text, "text").ok());
  int64_t failures = 0;
  while (Fails(failures, [&] { FormatSavedPlan(saved); })) ++failures;
  EXPECT_GT(failures, 3);
  failures = 0;
  while (Fails(failures, [&] { ParseSavedPlan(text, "text").status().IgnoreError(); })) ++failures;
  EXPECT_GT(failures, 10);
}

// Where there is none for a job or its thread, the job runs in the caller, or is refused, and the next one is not.
TEST(NoMemory, ARunnerGoesOnWithoutAThread) {
  for (const bool try_only : {false, true}) {
    int64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
      std::atomic<int> done = 0;
      int given = 0;
      {
        BackgroundRunner runner;
        const auto give = [&] {
          if (!try_only) runner.Run([&done] { ++done; });
          given += !try_only || runner.TryRun([&done] { ++done; });
        };
        failed = Fails(failures, give);
        give();
      }
      ASSERT_EQ(done, given) << failures;
      ASSERT_GE(given, 1) << failures;
    }
    EXPECT_GE(failures, 2) << "the job's, and the thread's";
  }
}

TEST(NoMemory, AJobThatFailsInTheCallerLeavesTheRunnerWhole) {
  bool failed = false;
  bool done = false;
  {
    BackgroundRunner runner;
    const auto fails = [&failed] {
      failed = true;
      throw std::bad_alloc();
    };
    EXPECT_TRUE(Fails(1, [&] { runner.Run(fails); }))
        << "the first is for the job, the second for its thread";
    runner.Run([&done] { done = true; });
  }
  EXPECT_TRUE(failed);
  EXPECT_TRUE(done);
}

// Two threads that allocate by turns, each on a stream of its own.
class Job {
 public:
  Job() {
    auto engine = Engine::Create({.solve = SolveAsEver},
                                 std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB), &runner_);
    engine_ = *std::move(engine);
    AppendTraining(scripts_[0], 12, {.layers = 6, .scale = 64 * 1024});
    AppendTraining(scripts_[1], 12, {.layers = 4, .scale = 96 * 1024});
  }

  // As the core does it: what could not be freed stays live.
  void Run() {
    size_t at[2] = {};
    for (bool more = true; more;) {
      more = false;
      for (const uint64_t thread : {0, 1}) {
        if (at[thread] == scripts_[thread].events().size()) continue;
        Step(thread, scripts_[thread].events()[at[thread]++]);
        more = true;
      }
    }
  }

  // What the core does after it has failed, and at the end of the process.
  void End() {
    const Engine::Guard guard = engine_->Lock();
    engine_->GiveBack(guard, /*plan_too=*/true);
    EXPECT_GE(engine_->committed(guard), engine_->placed(guard));
    for (const auto& [key, block] : std::exchange(live_, {})) engine_->Free(guard, block, Stream{key.first});
    const Counters counters = engine_->counters(guard);
    EXPECT_GE(counters.live, Bytes(0));
    EXPECT_EQ(counters.unknown_frees, 0);
    engine_->KnownPlans(guard);
  }

 private:
  void Step(uint64_t thread, const profiler::Event& event) {
    const Engine::Guard guard = engine_->Lock();
    const auto key = std::pair(thread, event.id);
    if (event.kind == profiler::EventKind::kAlloc) {
      const Offset offset = engine_->Allocate(
          guard, {.bytes = event.bytes, .alignment = Bytes(512), .stream = Stream{thread}, .thread = thread});
      if (offset != Engine::kNowhere) live_[key] = offset;
    } else if (const auto found = live_.find(key); found != live_.end()) {
      const Offset offset = found->second;
      live_.erase(found);
      engine_->Free(guard, offset, Stream{thread});
    }
  }

  InlineRunner runner_;
  std::unique_ptr<Engine> engine_;
  EventScript scripts_[2];
  std::map<std::pair<uint64_t, BlockId>, Offset> live_;
};

// Has no memory for what it is first told to run.
class FailsAtFirst : public InlineRunner {
 public:
  void Run(std::function<void()> job) override {
    if (left-- > 0) throw std::bad_alloc();
    InlineRunner::Run(std::move(job));
  }
  int left = 2;
};

TEST(NoMemory, WhereAPlanCannotBeAskedForTheJobIsServedOn) {
  FailsAtFirst runner;
  auto engine =
      *Engine::Create({.solve = SolveAsEver}, std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB), &runner);
  const Engine::Guard guard = engine->Lock();
  for (int round = 0; round < 30; ++round) {
    std::vector<Offset> blocks;
    for (int i = 1; i <= 80; ++i) {
      const auto at = engine->Allocate(guard, Bytes(4096 * i), Bytes(64), Stream{});
      ASSERT_TRUE(at.has_value());
      blocks.push_back(*at);
    }
    for (const Offset at : blocks) engine->Free(guard, at, Stream{});
  }
  EXPECT_EQ(engine->counters(guard).plans_failed, 2);
  EXPECT_EQ(engine->counters(guard).plans, 1);
}

TEST(NoMemory, AnEngineThatHasFailedTakesItsBlocksBack) {
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    Job job;
    failed = Fails(failures, [&] { job.Run(); });
    job.End();
  }
  EXPECT_GT(failures, 100);
}

// With the plans of the run before: read, waited with, followed, and its first cycle laid.
TEST(NoMemory, AnEngineThatBeginsWithPlansTakesItsBlocksBackToo) {
  const auto events = ManyLayersThatKeepGradients(4, 8);
  const auto first = Simulate(events, {.plan_seconds = 0.01});
  ASSERT_TRUE(first.ok()) << first.status();
  const SavedPlan saved = MakeSavedPlan({}, first->plans, 0.01);
  int64_t failures = 0;
  int64_t followed = 0;
  for (bool failed = true; failed; failures += 1) {
    InlineRunner runner;
    auto engine = *Engine::Create({.solve = SolveAsEver},
                                  std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 8), &runner);
    const Engine::Guard guard = engine->Lock();
    std::map<BlockId, Offset> live;
    failed = Fails(failures, [&] {
      auto plans = ToExpect(saved);
      if (!plans.ok() || !engine->Expect(guard, *std::move(plans)).ok()) return;
      for (const profiler::Event& event : events) {
        if (event.kind == profiler::EventKind::kAlloc) {
          const auto at = engine->Allocate(guard, event.bytes, Bytes(64), event.stream);
          if (at.has_value()) live[event.id] = *at;
        } else if (const auto found = live.find(event.id); found != live.end()) {
          const Offset at = found->second;
          live.erase(found);
          engine->Free(guard, at, event.stream);
        }
      }
    });
    for (const auto& [id, at] : live) engine->Free(guard, at, Stream{});
    EXPECT_EQ(engine->counters(guard).unknown_frees, 0);
    followed += engine->counters(guard).plans_resumed;
    engine->KnownPlans(guard);
  }
  EXPECT_GT(failures, 100);
  EXPECT_GT(followed, 10) << "and was followed in some of them before";
}

// The one thread that writes is not the job's, and what it cannot catch would end the job.
TEST(NoMemory, ARecorderWithoutItStops) {
  profiler::RecorderOptions options;
  options.path = testing::TempDir() + "/no_memory.reprise";
  const auto recorder = profiler::Recorder::Start(options);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  others_fail = true;
  for (uint64_t id = 1; id <= 20000; ++id)
    (*recorder)->Append({.kind = profiler::EventKind::kAlloc, .id = BlockId(id), .bytes = Bytes(4096)});
  const absl::Status finished = (*recorder)->Finish(std::chrono::minutes(1));
  others_fail = false;
  EXPECT_EQ(finished.message(), "the recorder ran out of memory");
}

}  // namespace
}  // namespace reprise::replay
