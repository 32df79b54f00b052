// What the device did beside what was allocated: CUPTI's activity records into the devices' traces.
//
//   CUPTI's threads      buffer completed -> records -> activities -> the recorder's queue of the device
//   a thread of ours     twice a second: has CUPTI hand over what is complete; lets go of it when no trace
//                        wants more
//
// CUPTI has one subscriber in a process. While it is us the job's own profiler finds it taken, and when
// somebody else is there already we say so and step aside. A client that registers its buffers without
// subscribing takes our place: ours then get no more, and what it is handed of them it may free(), as they
// come from malloc.
//
// No call of CUPTI's is made on a thread of the job, but for the first ones, before any call of the job is
// served.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "profiler/activities.h"
#include "profiler/shared_stacks.h"
#include "replay/core/trace.h"
#include "replay/cuda/cupti.h"
#include "replay/cuda/cupti_records.h"

namespace reprise::replay::cuda {

class Timeline {
 public:
  // One a process, never destroyed: CUPTI may call at any time. Null after saying why there is none. `names`
  // outlives it.
  static Timeline* Begin(profiler::SharedStacks& names);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // From now on the trace of device `ordinal`, which lives on, hears of what that does. Null: it has none.
  void AddDevice(int ordinal, CoreTrace* trace);
  // In a child, straight after fork: there is no device in it, and no thread of ours.
  static void AbandonAfterFork() noexcept;

 private:
  using Batches = HashMap<uint32_t, std::vector<profiler::Activity>>;  // by device
  struct OpenRange {
    int64_t begin_ns;
    profiler::FrameId name;
  };

  Timeline(const Cupti& cupti, profiler::SharedStacks& names) : cupti_(cupti), names_(names) {}
  absl::Status Subscribe();
  bool StartThread();
  void Run();
  bool Wanted();
  void LetGo();
  void EndAtExit() noexcept;

  static void OnBufferRequested(uint8_t** buffer, size_t* bytes, size_t* most_records) noexcept;
  static void OnBufferCompleted(cu_context, uint32_t, uint8_t* buffer, size_t, size_t valid) noexcept;
  void TakeRecords(uint8_t* buffer, size_t valid);
  void Take(const uint32_t* record, int64_t clock_offset, Batches& batches);
  void TakeMarker(const MarkerRecord& marker, int64_t clock_offset, Batches& batches);
  profiler::FrameId NameOf(const char* name);
  int64_t ClockOffset() const;

  const Cupti cupti_;
  profiler::SharedStacks& names_;
  const pid_t pid_ = getpid();
  Cupti::Subscriber subscriber_ = nullptr;
  std::thread thread_;

  std::mutex mutex_;  // never held while CUPTI is called
  std::condition_variable changed_;
  std::vector<std::pair<uint32_t, CoreTrace*>> traces_;
  HashMap<uint32_t, OpenRange> open_ranges_;  // of markers that have begun
  bool ending_ = false, ended_ = false;
};

}  // namespace reprise::replay::cuda
