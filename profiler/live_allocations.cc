#include "profiler/live_allocations.h"

namespace reprise::profiler {

LiveAllocations::Change LiveAllocations::Add(const Event& event) {
  if (event.kind == EventKind::kAlloc) return AddAlloc(event);
  if (event.kind == EventKind::kFree) return AddFree(event);
  return {};
}

LiveAllocations::Change LiveAllocations::AddAlloc(const Event& event) {
  bytes_ += event.bytes;
  return live_[event.id] = {&event, event.bytes};
}

LiveAllocations::Change LiveAllocations::AddFree(const Event& event) {
  const auto it = live_.find(event.id);
  if (it == live_.end()) return {};
  const Change came = it->second;
  live_.erase(it);
  bytes_ -= came.bytes;
  return {came.alloc, Bytes(0) - came.bytes};
}

}  // namespace reprise::profiler
