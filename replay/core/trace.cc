#include "replay/core/trace.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace reprise::replay {
namespace {

constexpr std::chrono::seconds kPatience{5};

}  // namespace

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

absl::StatusOr<std::unique_ptr<CoreTrace>> CoreTrace::Begin(const Options& options) {
  profiler::RecorderOptions recording;
  recording.path = options.path;
  recording.metadata = options.metadata;
  recording.most_bytes = options.limit.count();
  recording.most_activity_bytes = options.activity_limit.count();
  recording.stacks = options.stacks != nullptr ? &options.stacks->stacks() : options.names;
  absl::StatusOr<std::unique_ptr<profiler::Recorder>> recorder = profiler::Recorder::Start(recording);
  if (!recorder.ok()) return recorder.status();
  return std::unique_ptr<CoreTrace>(new CoreTrace(*std::move(recorder), options));
}

CoreTrace::CoreTrace(std::unique_ptr<profiler::Recorder> recorder, const Options& options)
    : recorder_(std::move(recorder)),
      until_planned_(options.until_planned),
      with_activities_(options.with_activities),
      passed_(options.passed),
      stacks_(options.stacks),
      begun_ns_(MonotonicNs()) {
  if (stacks_ != nullptr) stacks_->BeginListening();
}

// With the lock, so in order with the events. What the device did meanwhile may not have been told yet.
void CoreTrace::OnPlanAdopted() {
  if (!until_planned_ || done()) return;
  if (with_activities_) {
    recorder_->EndsBy(profiler::TraceEnd::kFirstPlan);
  } else {
    recorder_->SetPassed(passed_());
    recorder_->Stop(profiler::TraceEnd::kFirstPlan);
  }
  if (stacks_ != nullptr) stacks_->EndListening();
  done_.store(true, std::memory_order_relaxed);
}

profiler::Event CoreTrace::NewEvent(profiler::EventKind kind, BlockId id, Stream stream) const {
  profiler::Event event;
  event.kind = kind;
  event.id = id;
  event.stream = stream;
  event.thread = static_cast<uint32_t>(ThreadNumber());
  event.time_ns = MonotonicNs() - begun_ns_;
  return event;
}

void CoreTrace::OnAlloc(BlockId id, Bytes bytes, Bytes alignment, Stream stream) {
  if (done()) return;
  profiler::Event event = NewEvent(profiler::EventKind::kAlloc, id, stream);
  event.bytes = bytes;
  event.alignment = alignment;
  if (stacks_ != nullptr) {
    event.stack = StackSource::taken();
    if (event.stack == profiler::StackId(0)) without_stack_.fetch_add(1, std::memory_order_relaxed);
  }
  recorder_->Append(event);
}

void CoreTrace::OnFree(BlockId id, Stream stream) {
  if (!done()) recorder_->Append(NewEvent(profiler::EventKind::kFree, id, stream));
}

void CoreTrace::OnActivities(std::vector<profiler::Activity> activities) {
  for (profiler::Activity& activity : activities) activity.begin_ns -= begun_ns_;
  recorder_->Append(activities);
}

absl::Status CoreTrace::Finish() {
  recorder_->SetPassed(passed_());
  return recorder_->Finish(kPatience);
}

TraceCounters CoreTrace::counters() const {
  const profiler::RecorderCounters recorded = recorder_->counters();
  TraceCounters counters;
  counters.events = static_cast<int64_t>(recorded.written);
  counters.bytes = Bytes(recorded.bytes);
  counters.dropped = static_cast<int64_t>(recorded.dropped);
  counters.after_end = static_cast<int64_t>(recorded.lost);
  counters.full = recorded.full;
  counters.stopped = recorded.stopped;
  counters.activities = static_cast<int64_t>(recorded.activities);
  counters.activities_dropped = static_cast<int64_t>(recorded.activities_dropped);
  counters.activities_full = recorded.activities_full;
  counters.without_stack = without_stack_.load(std::memory_order_relaxed);
  return counters;
}

}  // namespace reprise::replay
