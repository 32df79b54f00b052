#include "replay/models/run_model.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "replay/overlap_checker.h"

namespace reprise::replay {

ModelResult RunModel(std::span<const profiler::Event> events, AllocatorModel& model, const Watch& watch) {
  ModelResult result;
  watch.Begin(events.size());
  OverlapChecker checker;
  absl::flat_hash_map<BlockId, Offset> live;
  const auto note_peaks = [&] {
    result.reserved_peak = std::max(result.reserved_peak, model.reserved());
    result.allocated_peak = std::max(result.allocated_peak, model.allocated());
  };
  note_peaks();
  for (size_t i = 0; i < events.size(); ++i) {
    const profiler::Event& event = events[i];
    if (watch.ShouldStop(i)) {
      result.stopped = true;
      break;
    }
    if (watch.track != nullptr) watch.track->reserved[i] = model.reserved();
    if (event.kind == profiler::EventKind::kAlloc) {
      if (event.bytes <= Bytes(0)) {
        ++result.ignored;
        continue;
      }
      const std::optional<Offset> offset = model.Allocate(event.bytes, event.stream);
      note_peaks();
      if (!offset.has_value()) {
        result.failed_at = static_cast<int64_t>(i);
        break;
      }
      checker.OnPlaced(*offset, event.bytes);
      live[event.id] = *offset;
      if (watch.track != nullptr) {
        watch.track->offsets[i] = *offset;
        watch.track->reserved[i] = model.reserved();
      }
    } else if (event.kind == profiler::EventKind::kFree) {
      const auto it = live.find(event.id);
      if (it == live.end()) {
        ++result.ignored;
        continue;
      }
      checker.OnFreed(it->second);
      model.Free(it->second, event.stream);
      live.erase(it);
      if (watch.track != nullptr) watch.track->reserved[i] = model.reserved();
    }
  }
  result.driver_allocations = model.driver_allocations();
  result.overlaps = checker.overlaps();
  return result;
}

}  // namespace reprise::replay
