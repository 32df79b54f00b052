// Records a job's events into a trace file from inside the job.
//
//   job thread, under the engine's lock         the recorder's own thread
//   Append --copy--> [ ring of events ] --drain--> encode -> zstd -> write
//
// Guarantees
//   - Append copies one event and never waits, allocates or makes a system call other than to wake the
//     thread once a quarter of the ring.
//   - Memory is bounded: the ring, the queue of activities where there are any, a block of each, and what
//     zstd needs.
//   - What is lost is counted. The trace stays consistent: when the thread does not keep up, allocations
//     are dropped whole, each with its later free; a free is never missing where its allocation is there
//     (recording stops rather than that, and the file says so).
//   - After kill -9 about the last second of activity is missing, and nothing else.
//   - In a forked child the recorder is inert (AbandonAfterFork), and the parent's file is not touched.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profiler/activities.h"
#include "profiler/shared_stacks.h"
#include "profiler/trace_format.h"
#include "profiler/types.h"

namespace reprise::profiler {

struct RecorderOptions {
  std::string path{};
  TraceMetadata metadata{};
  int64_t most_bytes = 0;  // recording stops when the file would grow past it; 0: no limit
  int64_t most_activity_bytes =
      0;  // activities end when they would take more of the file, beside that; 0: no limit
  SharedStacks* stacks = nullptr;  // that events and activities name, outlives the recorder; null: none
  size_t ring_events =
      size_t{1} << 17;  // rounded up to a power of two, at least 64; pages are used on demand
};

struct RecorderCounters {
  uint64_t recorded = 0;    // taken into the ring
  uint64_t dropped = 0;     // not taken while recording went on: the ring was full
  uint64_t written = 0;     // in complete blocks of the file
  uint64_t lost = 0;        // not in the file because recording had ended, or writing failed
  int64_t bytes = 0;        // the file's size
  uint64_t activities = 0;  // in complete blocks of the file
  uint64_t activities_dropped =
      0;  // and not in them: as told, or the thread fell behind, or recording had ended
  bool activities_full = false;  // they ended at their limit
  bool full = false;             // it was the size limit that stopped recording
  std::string stopped;  // why recording stopped early; empty while it goes on, or when it was finished
};

class Recorder {
 public:
  // Opens the file and starts the thread, which blocks all signals and is named "reprise-trace". Errors: what
  // opening, writing the metadata, and starting the thread say.
  static absl::StatusOr<std::unique_ptr<Recorder>> Start(const RecorderOptions& options);
  // Finishes, and waits for the thread for as long as a write takes: the core leaks its recorder instead.
  // After AbandonAfterFork it does nothing.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Takes one event. One caller at a time (the engine's lock). The ids of allocations must rise.
  void Append(const Event& event) noexcept;
  // The events end here, and the file is to say why: what ended them first. Called as Append is, in place of it
  // from then on.
  void EndsBy(TraceEnd why) noexcept {
    TraceEnd none = TraceEnd::kClosed;
    end_.compare_exchange_strong(none, why, std::memory_order_acq_rel);
  }

  // The same where nothing else is to come either: the thread closes the file and ends, and nobody waits for it.
  void Stop(TraceEnd why) noexcept;

  // So many bytes were in requests that Append was not told of. Before Finish and Stop.
  void SetPassed(Bytes passed) noexcept { passed_.store(passed.count(), std::memory_order_release); }

  // Takes activities, in any order. They wait in a queue of bounded length, beside the events, which do not
  // wait for them. Any thread; locks and allocates, so it is not for threads of the job that are about to
  // allocate.
  void Append(const std::vector<Activity>& activities);
  // Activities that were lost before they came here.
  void AddDroppedActivities(uint64_t count);
  // Whether activities may still reach the file. Any thread.
  bool takes_activities() const;

  // Waits until everything appended before is in complete blocks of the file. DeadlineExceeded when that
  // takes longer (or the thread is gone), otherwise the writer's status. Any thread.
  absl::Status Flush(std::chrono::nanoseconds patience);
  // The same, then the file gets its totals and is closed. Events appended after it are counted as dropped.
  absl::Status Finish(std::chrono::nanoseconds patience);

  // In a child, straight after fork: every later call returns at once. Async-signal-safe.
  void AbandonAfterFork() noexcept;

  RecorderCounters counters() const;  // any thread

 private:
  class Consumer;
  // Allocations dropped one after another: all with ids in [first, last]; `live` of them are not freed yet.
  struct DroppedRun {
    BlockId first, last;
    uint64_t live;
  };
  enum class State : int { kRecording, kStopped, kAbandoned };
  struct FreeRing {
    void operator()(Event* ring) const;
  };

  explicit Recorder(size_t ring_events);
  bool Admit(const Event& event) noexcept;
  bool AdmitAlloc(BlockId id, uint64_t waiting) noexcept;
  bool AdmitFree(BlockId id, uint64_t waiting) noexcept;
  absl::Status Request(bool finish, std::chrono::nanoseconds patience);
  bool InInertChild() const;

  const size_t ring_events_;  // a power of two
  const std::unique_ptr<Event[], FreeRing> ring_;
  const pid_t pid_;  // the process that records
  std::atomic<State> state_{State::kRecording};
  std::atomic<TraceEnd> end_{TraceEnd::kClosed};  // what the file is to end with
  std::atomic<int64_t> passed_{0};                // likewise

  // Append's side. An event is at ring_[index % ring_events_] from its head_ on until its tail_.
  std::atomic<uint64_t> head_{0};
  uint64_t tail_seen_ = 0;  // what Append last read of tail_
  bool dropping_ = false;
  size_t runs_ = 0;
  bool run_open_ = false;  // the last run still grows: no allocation was admitted since
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> late_{0};               // came when recording had ended
  std::array<DroppedRun, 256> dropped_runs_{};  // rising; also keeps head_ and tail_ on different cache lines

  // The thread's side.
  std::atomic<uint64_t> tail_{0};
  std::unique_ptr<Consumer> consumer_;
};

}  // namespace reprise::profiler
