// Why: a real device is behind the host by most of an iteration. What is free by the host's count is not to be
// moved or given back yet, and must not be kept for good either.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

constexpr Stream kJobStream{0};

// A device that comes to what the host has queued so many frees later.
class EventsBehind : public StreamEvents {
 public:
  EventsBehind(const int64_t* now, int64_t behind) : now_(now), behind_(behind) {}
  Event Record(Stream) override { return reinterpret_cast<Event>(*now_ + behind_); }
  bool Wait(Stream, Event) override { return true; }
  bool Complete(Event event) override { return reinterpret_cast<int64_t>(event) <= *now_; }
  void Recycle(Stream, Event) override {}

 private:
  const int64_t* now_;
  const int64_t behind_;
};

TEST(DeviceBehind, GivesBackWhatLiesOutsideOfThePlanOnceTheDeviceHasFinishedWithIt) {
  const auto held = [](int64_t behind) {
    int64_t now = 1;
    EventsBehind events(&now, behind);
    InlineRunner runner;
    auto engine = Engine::Create({.plan_seconds = 0.05},
                                 std::make_unique<CountedMemory>(Bytes(2 << 20), kGiB * 64, kGiB * 64),
                                 &runner, &events);
    EXPECT_TRUE(engine.ok());
    const Engine::Guard guard = (*engine)->Lock();
    EventScript script;
    AppendTraining(script, 12);
    std::map<BlockId, Offset> placed;
    for (const profiler::Event& event : script.events()) {
      ++now;
      if (event.kind == profiler::EventKind::kAlloc) {
        placed[event.id] = *(*engine)->Allocate(guard, event.bytes, Bytes(64), kJobStream);
      } else if (event.kind == profiler::EventKind::kFree) {
        (*engine)->Free(guard, placed[event.id], kJobStream);
      }
    }
    EXPECT_EQ((*engine)->counters(guard).plans, 1);
    return (*engine)->counters(guard).reserved;
  };
  EXPECT_EQ(held(20), held(0));
}

}  // namespace
}  // namespace reprise::replay
