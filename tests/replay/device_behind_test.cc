// Why: a real device is behind the host by most of an iteration. What is free by the host's count is not to be
// moved or given back yet; it must not be kept for good either, nor may more be held in its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

constexpr Stream kJobStream{0};

// A device that comes to what the host has queued so many events later, unless the host waits for it.
class EventsBehind : public StreamEvents {
 public:
  EventsBehind(const int64_t* now, int64_t behind, bool can_be_awaited)
      : now_(now), behind_(behind), can_be_awaited_(can_be_awaited) {}
  Event Record(Stream) override { return reinterpret_cast<Event>(*now_ + behind_); }
  bool Wait(Stream, Event) override { return true; }
  bool Complete(Event event) override {
    return reinterpret_cast<int64_t>(event) <= std::max(*now_, caught_up_);
  }
  bool Await(Event event) override {
    if (can_be_awaited_) caught_up_ = std::max(caught_up_, reinterpret_cast<int64_t>(event));
    return Complete(event);
  }
  void Recycle(Stream, Event) override {}

 private:
  const int64_t* now_;
  const int64_t behind_;
  const bool can_be_awaited_;
  int64_t caught_up_ = 0;
};

// What a job has come to on a device so many events behind.
Counters Served(const EventScript& script, int64_t behind, bool can_be_awaited) {
  int64_t now = 1;
  EventsBehind events(&now, behind, can_be_awaited);
  InlineRunner runner;
  auto engine =
      Engine::Create({.plan_seconds = 0.05},
                     std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64, kGiB * 64), &runner, &events);
  EXPECT_TRUE(engine.ok());
  const Engine::Guard guard = (*engine)->Lock();
  std::map<BlockId, Offset> placed;
  for (const profiler::Event& event : script.events()) {
    ++now;
    if (event.kind == profiler::EventKind::kAlloc) {
      placed[event.id] = *(*engine)->Allocate(guard, event.bytes, Bytes(64), kJobStream);
    } else if (event.kind == profiler::EventKind::kFree) {
      (*engine)->Free(guard, placed[event.id], kJobStream);
    }
  }
  return (*engine)->counters(guard);
}

TEST(DeviceBehind, GivesBackWhatLiesOutsideOfThePlanOnceTheDeviceHasFinishedWithIt) {
  EventScript script;
  AppendTraining(script, 12);
  const Counters behind = Served(script, 20, /*can_be_awaited=*/false);
  EXPECT_EQ(behind.plans, 1);
  EXPECT_EQ(behind.reserved, Served(script, 0, /*can_be_awaited=*/false).reserved);
}

// Evaluations between the iterations, and sizes that make granules move.
EventScript WithEvaluations() {
  EventScript script;
  TrainingJob job(&script, {.layers = 40, .scale = 300 << 10});
  for (int i = 0; i < 8; ++i) {
    job.Iterate(3);
    job.Evaluate();
  }
  return script;
}

TEST(DeviceBehind, HoldsNoMoreThanIfItWereNotOnceTheHostHasWaitedForIt) {
  const EventScript script = WithEvaluations();
  const Counters never = Served(script, 0, /*can_be_awaited=*/true);
  EXPECT_EQ(never.host_waits, 0);
  for (const int64_t events : {200, 800}) {
    const Counters behind = Served(script, events, /*can_be_awaited=*/true);
    EXPECT_GT(behind.plans, 0);
    EXPECT_GT(behind.host_waits, 0);
    EXPECT_EQ(behind.reserved_peak, never.reserved_peak) << events;
    EXPECT_GT(Served(script, events, /*can_be_awaited=*/false).reserved_peak, never.reserved_peak) << events;
  }
}

}  // namespace
}  // namespace reprise::replay
