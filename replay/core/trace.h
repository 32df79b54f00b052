// The engine's events into a trace file: the core's side of the recorder.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/recorder.h"
#include "replay/core/summary.h"
#include "replay/engine.h"
#include "replay/stacks/stack_source.h"

namespace reprise::replay {

// 1, 2, ... by thread of this process, in the order in which they first ask.
uint64_t ThreadNumber();

class CoreTrace : public EventSink {
 public:
  struct Options {
    std::string path;  // exists, empty and ours
    profiler::TraceMetadata metadata;
    Bytes limit{0};                 // the most to write; 0: no limit
    bool until_planned = true;      // the served path carries no recording
    std::function<Bytes()> passed;  // bytes in requests that no event is of, so far; any thread
    bool with_activities = false;   // there may be some
    Bytes activity_limit{0};        // the most to write of them, beside that
    StackSource* stacks = nullptr;  // of the allocating threads, outlives the trace; null: none are kept
    profiler::SharedStacks* names = nullptr;  // of activities, where there are no stacks to keep them with
  };

  // Errors: what opening and starting the recorder's thread say.
  static absl::StatusOr<std::unique_ptr<CoreTrace>> Begin(const Options& options);

  // Called under the engine's lock.
  void OnAlloc(BlockId id, Bytes bytes, Bytes alignment, Stream stream) override;
  void OnFree(BlockId id, Stream stream) override;
  void OnPlanAdopted() override;
  // Nothing more will be recorded: the engine need not tell.
  bool done() const { return done_.load(std::memory_order_relaxed); }

  // What the device did; times are of CLOCK_MONOTONIC. Any thread but those of the job that allocate.
  void OnActivities(std::vector<profiler::Activity> activities);
  void OnActivitiesDropped(uint64_t count) { recorder_->AddDroppedActivities(count); }
  // False from when the trace has ended, or the activities in it at their limit.
  bool wants_activities() const { return !done() && recorder_->takes_activities(); }

  // Without the engine's lock, after it has stopped telling. Waits for the recorder's thread, but not for
  // ever.
  absl::Status Finish();
  // In a child, straight after fork.
  void AbandonAfterFork() noexcept { recorder_->AbandonAfterFork(); }

  TraceCounters counters() const;

 private:
  CoreTrace(std::unique_ptr<profiler::Recorder> recorder, const Options& options);
  profiler::Event NewEvent(profiler::EventKind kind, BlockId id, Stream stream) const;

  const std::unique_ptr<profiler::Recorder> recorder_;
  const bool until_planned_;
  const bool with_activities_;
  const std::function<Bytes()> passed_;
  StackSource* const stacks_;
  const int64_t begun_ns_;
  std::atomic<int64_t> without_stack_{0};
  std::atomic<bool> done_{false};  // changes under the engine's lock
};

}  // namespace reprise::replay
