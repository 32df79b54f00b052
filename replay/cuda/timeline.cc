#include "replay/cuda/timeline.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/block_signals.h"
#include "base/clock.h"
#include "base/exceptions.h"
#include "base/own_threads.h"
#include "replay/core/log.h"

namespace reprise::replay::cuda {
namespace {

using profiler::ActivityKind;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kMostBuffers = 64;  // with CUPTI at once: when it wants more, it drops records
constexpr size_t kMostOpenRanges = 4096;
constexpr std::chrono::milliseconds kFlushEvery{500};
constexpr std::chrono::seconds kPatience{5};
constexpr uint32_t kEveryDevice = UINT32_MAX;
constexpr uint32_t kKinds[] = {kRecordKernel, kRecordCopy, kRecordPeerCopy, kRecordSet, kRecordMarker};

std::atomic<Timeline*> current{nullptr};  // null: none, or a fork's child
std::atomic<int> buffers_out{0};

// Whatever CUPTI says, a reader must take the trace.
bool IsTime(uint64_t ns) { return ns <= static_cast<uint64_t>(profiler::kMostActivityNs); }

// By CUpti_ActivityMemcpyKind.
const char* NameOfCopy(uint8_t kind) {
  static constexpr const char* kNames[] = {"copy",
                                           "copy host to device",
                                           "copy device to host",
                                           "copy host to array",
                                           "copy array to host",
                                           "copy array to array",
                                           "copy array to device",
                                           "copy device to array",
                                           "copy device to device",
                                           "copy host to host",
                                           "copy device to another device"};
  return kNames[kind < std::size(kNames) ? kind : 0];
}

}  // namespace

Timeline* Timeline::Begin(profiler::SharedStacks& names) {
  const auto none = [](const std::string& why) {
    Log(LogLevel::kWarn, absl::StrCat("no time line: ", why));
    return nullptr;
  };
  const absl::StatusOr<Cupti> cupti = Cupti::Find();
  if (!cupti.ok()) return none(std::string(cupti.status().message()));
  auto* const timeline = new Timeline(*cupti, names);
  current.store(timeline);
  absl::Status status = timeline->Subscribe();
  if (status.ok() && !timeline->StartThread()) status = absl::ResourceExhaustedError("no thread can be had");
  if (status.ok()) {
    // Behind CUPTI's own handlers, so before them at the end.
    atexit([] {
      if (Timeline* const now = current.load()) now->EndAtExit();
    });
    return timeline;
  }
  timeline->LetGo();
  return none(std::string(status.message()));
}

// The order that CUPTI's documentation asks for: whoever would trace subscribes first, and learns that way of
// others.
absl::Status Timeline::Subscribe() {
  const Cupti::Result result = cupti_.Subscribe(
      &subscriber_, [](void*, int, uint32_t, const void*) {}, nullptr);
  if (result != Cupti::kSuccess) subscriber_ = nullptr;
  if (result == Cupti::kMultipleSubscribers || result == Cupti::kMaxLimitReached) {
    return absl::UnavailableError("another profiler has subscribed to CUPTI, and only one can");
  }
  const auto failed = [this](const char* what, Cupti::Result why) {
    return absl::UnavailableError(absl::StrCat("CUPTI refused to ", what, ": ", cupti_.Words(why)));
  };
  if (result != Cupti::kSuccess) return failed("be subscribed to", result);
  if (const Cupti::Result registered = cupti_.RegisterCallbacks(&OnBufferRequested, &OnBufferCompleted);
      registered != Cupti::kSuccess) {
    return failed("take buffers", registered);
  }
  for (const uint32_t kind : kKinds) {
    const Cupti::Result enabled = cupti_.Enable(kind);
    if (enabled == Cupti::kSuccess) continue;
    if (kind == kRecordKernel) return failed("record kernels", enabled);
    Log(LogLevel::kInfo,
        absl::StrCat("CUPTI records no activities of kind ", kind, ": ", cupti_.Words(enabled)));
  }
  return absl::OkStatus();
}

bool Timeline::StartThread() {
  const BlockAllSignals blocked;
  try {
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "reprise-time");
      LeaveTheStartersCpu();
      if (!Completes([this] { Run(); })) {
        Log(LogLevel::kWarn, "no memory for the time line; it ends here");
      }
      LetGo();
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
  } catch (...) {  // no thread, or no memory for one: told by thread_
  }
  return thread_.joinable();
}

void Timeline::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_ && Wanted()) {
    lock.unlock();
    cupti_.FlushAll(0);
    lock.lock();
    changed_.wait_for(lock, kFlushEvery, [this] { return ending_; });
  }
  const bool full = std::ranges::any_of(
      traces_, [](const auto& entry) { return entry.second->counters().activities_full; });
  lock.unlock();
  if (full) Log(LogLevel::kWarn, "the time line has reached its limit (REPRISE_TRACE_LIMIT); it ends here");
}

// Under the lock. Where no device has a trace, one that is yet to come may have.
bool Timeline::Wanted() {
  return traces_.empty() ||
         std::ranges::any_of(traces_, [](const auto& entry) { return entry.second->wants_activities(); });
}

// Of everything: what CUPTI still has comes first, and then somebody else may subscribe.
void Timeline::LetGo() {
  if (subscriber_ == nullptr) return;
  for (const uint32_t kind : kKinds) cupti_.Disable(kind);
  cupti_.FlushAll(Cupti::kFlushForced);
  cupti_.Unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

// Waits for our thread, which asks CUPTI for the last records, but not for ever.
void Timeline::EndAtExit() noexcept {
  if (getpid() != pid_) return;  // a child whose fork nobody told us of
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  if (!changed_.wait_for(lock, kPatience, [this] { return ended_; })) {
    Log(LogLevel::kWarn, "CUPTI did not hand over its last records in time; the time line ends without them");
  }
}

void Timeline::AbandonAfterFork() noexcept { current.store(nullptr); }

void Timeline::AddDevice(int ordinal, CoreTrace* trace) {
  const std::lock_guard lock(mutex_);
  if (trace != nullptr) traces_.emplace_back(static_cast<uint32_t>(ordinal), trace);
}

void Timeline::OnBufferRequested(uint8_t** buffer, size_t* bytes, size_t* most_records) noexcept {
  *buffer = nullptr;
  *bytes = 0;
  *most_records = 0;  // as many as there is room for
  if (current.load() == nullptr) return;
  if (buffers_out.fetch_add(1) >= kMostBuffers) {
    buffers_out.fetch_sub(1);
    return;
  }
  *buffer = static_cast<uint8_t*>(malloc(kBufferBytes));
  if (*buffer == nullptr) {
    buffers_out.fetch_sub(1);
    return;
  }
  *bytes = kBufferBytes;
}

void Timeline::OnBufferCompleted(cu_context, uint32_t, uint8_t* buffer, size_t, size_t valid) noexcept {
  Timeline* const timeline = current.load();
  if (timeline != nullptr && !Completes([&] { timeline->TakeRecords(buffer, valid); })) {
    Log(LogLevel::kWarn, "no memory for the time line; a part of it is missing");
  }
  free(buffer);
  buffers_out.fetch_sub(1);
}

void Timeline::TakeRecords(uint8_t* buffer, size_t valid) {
  const int64_t clock_offset = ClockOffset();
  Batches batches;
  const uint32_t* record = nullptr;
  while (cupti_.GetNextRecord(buffer, valid, &record) == Cupti::kSuccess) Take(record, clock_offset, batches);
  size_t dropped = 0;
  cupti_.GetNumDropped(nullptr, 0, &dropped);
  const std::lock_guard lock(mutex_);
  for (const auto& [device, trace] : traces_) {
    if (const auto batch = batches.find(device); batch != batches.end()) {
      trace->OnActivities(std::move(batch->second));
    }
    if (const auto markers = batches.find(kEveryDevice); markers != batches.end()) {
      trace->OnActivities(markers->second);
    }
  }
  // Of which device, CUPTI does not say.
  if (!traces_.empty()) traces_.front().second->OnActivitiesDropped(dropped);
}

// A time of 0 is one that CUPTI could not take, and of work that is not over at the last flush.
void Timeline::Take(const uint32_t* record, int64_t clock_offset, Batches& batches) {
  const auto add = [&](const auto& work, ActivityKind kind, const char* name, uint64_t bytes) {
    if (work.start == 0 || work.end < work.start || !IsTime(work.end)) return;
    batches[work.device].push_back(
        {.kind = kind,
         .track = work.stream,
         .name = NameOf(name),
         .bytes = Bytes(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX))),
         .begin_ns = static_cast<int64_t>(work.start) + clock_offset,
         .duration_ns = static_cast<int64_t>(work.end - work.start)});
  };
  switch (*record) {
    case kRecordKernel: {
      const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
      return add(kernel, ActivityKind::kKernel, kernel.name, 0);
    }
    case kRecordCopy:
    case kRecordPeerCopy: {
      const auto& copy = *reinterpret_cast<const CopyRecord*>(record);
      return add(copy, ActivityKind::kCopy, NameOfCopy(copy.copy_kind), copy.bytes);
    }
    case kRecordSet: {
      const auto& set = *reinterpret_cast<const SetRecord*>(record);
      return add(set, ActivityKind::kSet, "set", set.bytes);
    }
    case kRecordMarker:
      return TakeMarker(*reinterpret_cast<const MarkerRecord*>(record), clock_offset, batches);
    default:
      return;
  }
}

// Of a range the begin has the name, and the end comes later under the same id. All devices' traces get them.
void Timeline::TakeMarker(const MarkerRecord& marker, int64_t clock_offset, Batches& batches) {
  if (marker.timestamp == 0 || !IsTime(marker.timestamp)) return;
  const int64_t now = static_cast<int64_t>(marker.timestamp) + clock_offset;
  OpenRange range = {now, NameOf(marker.name)};
  if ((marker.flags & kMarkerBegin) != 0) {
    const std::lock_guard lock(mutex_);
    if (open_ranges_.size() < kMostOpenRanges) open_ranges_[marker.id] = range;
    return;
  }
  if ((marker.flags & kMarkerEnd) != 0) {
    const std::lock_guard lock(mutex_);
    const auto begun = open_ranges_.find(marker.id);
    if (begun == open_ranges_.end()) return;
    range = begun->second;
    open_ranges_.erase(begun);
  }
  batches[kEveryDevice].push_back({.kind = ActivityKind::kMarker,
                                   .track = marker.object_kind == kObjectThread ? marker.object[1] : 0,
                                   .name = range.name,
                                   .bytes = {},
                                   .begin_ns = range.begin_ns,
                                   .duration_ns = std::max<int64_t>(0, now - range.begin_ns)});
}

profiler::FrameId Timeline::NameOf(const char* name) {
  if (name == nullptr) return profiler::FrameId(0);
  return names_.Intern(profiler::Frame{.kind = profiler::FrameKind::kDevice, .function = name});
}

// What to add to CUPTI's time for CLOCK_MONOTONIC. Taken anew for every buffer: CUPTI's clock is the system's
// wall clock, which may be set.
int64_t Timeline::ClockOffset() const {
  uint64_t theirs = 0;
  const int64_t before = MonotonicNs();
  cupti_.GetTimestamp(&theirs);
  const int64_t after = MonotonicNs();
  return before + (after - before) / 2 - static_cast<int64_t>(theirs);
}

}  // namespace reprise::replay::cuda
