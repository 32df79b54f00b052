// A device, and a planner, that are behind the job by so many of its allocations: for `simulate` and for tests, where the
// outcome must not depend on timing. The host may always wait for the device, which has done then all that was queued.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "replay/planning.h"
#include "replay/stream_order.h"

namespace reprise::replay {

class DeviceBehind : public StreamEvents, public PlanRunner {
 public:
  explicit DeviceBehind(int64_t allocations) : behind_(allocations * kAllocation) {}

  // The job is about to allocate, or to free.
  void OnAllocation() {
    clock_ += kAllocation;
    for (; !plans_.empty() && plans_.front().first <= clock_; plans_.pop_front()) plans_.front().second();
  }
  void OnFree() { ++clock_; }
  // The job has waited for all that it has queued.
  void CatchUp() { caught_up_ = clock_; }
  // The engine's small number of a stream, whatever it was in the recording.
  Stream NumberOf(Stream stream) {
    if (IsEveryStream(stream)) return stream;
    return numbers_.try_emplace(stream, Stream(numbers_.size())).first->second;
  }

  Event Record(Stream) override {
    return reinterpret_cast<Event>(clock_);  // NOLINT(performance-no-int-to-ptr)
  }
  bool Finished(Stream) override { return caught_up_ == clock_; }
  bool Wait(Stream, Event) override { return true; }
  bool Complete(Event event) override {
    const auto at = reinterpret_cast<int64_t>(event);
    return at <= caught_up_ || at + behind_ <= clock_;
  }
  bool Await(Event event) override {
    caught_up_ = std::max(caught_up_, reinterpret_cast<int64_t>(event));
    return true;
  }
  void Recycle(Stream, Event) override {}

  void Run(std::function<void()> job) override { plans_.emplace_back(clock_ + behind_, std::move(job)); }

 private:
  // Between two allocations there is room for as many frees.
  static constexpr int64_t kAllocation = int64_t{1} << 24;

  const int64_t behind_;
  int64_t clock_ = 1;  // a time of 0 is no event
  int64_t caught_up_ = 0;
  std::deque<std::pair<int64_t, std::function<void()>>> plans_;
  absl::flat_hash_map<Stream, Stream> numbers_;
};

}  // namespace reprise::replay
