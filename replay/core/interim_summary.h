// The summary of a process that goes on, written now and then: a job that is killed has no end to write it at.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "replay/background_runner.h"

namespace reprise::replay {

class InterimSummary {
 public:
  // `write` runs on a thread of ours, which is there while it does, never twice at once; `on_thread` runs first
  // on each.
  InterimSummary(std::function<void()> on_thread, std::function<void()> write)
      : write_(std::move(write)), runner_(std::move(on_thread)) {}

  // Called at requests, by any thread and under any lock: one look at a clock.
  void Tend() {
    const int64_t now = MonotonicNs();
    if (now >= due_.load(std::memory_order_relaxed)) Write(now);
  }

  // When it is due again, by how long the process has been running: while it makes requests, what is left is never
  // much older than an eighth of it nor than ten minutes, and a second at first; and thousands of ranks write little
  // into the folder that they share.
  static int64_t NsUntilNext(int64_t run_ns);

 private:
  void Write(int64_t now);

  const std::function<void()> write_;
  const int64_t begun_ = MonotonicNs();
  std::atomic<int64_t> due_{begun_ + NsUntilNext(0)};
  std::atomic<bool> writing_{false};
  BackgroundRunner runner_;
};

}  // namespace reprise::replay
