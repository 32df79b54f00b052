#include "profiler/lifetimes.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace reprise::profiler {

LifetimeTable LifetimesOf(const std::vector<Event>& events) {
  LifetimeTable table;
  absl::flat_hash_map<BlockId, size_t> live;  // where a block stands in the table
  Bytes live_bytes;
  const Tick end(static_cast<int64_t>(events.size()));
  Tick now;
  for (const Event& event : events) {
    if (event.kind == EventKind::kAlloc) {
      live.emplace(event.id, table.blocks.size());
      table.blocks.push_back({event.id, now, end, event.bytes, event.alignment, event.stream, true});
      live_bytes += event.bytes;
      if (live_bytes > table.live_peak) {
        table.live_peak = live_bytes;
        table.peak_at = now;
      }
    } else if (event.kind == EventKind::kFree) {
      const auto it = live.find(event.id);
      BlockLifetime& block = table.blocks[it->second];
      block.free = now;
      block.never_freed = false;
      live_bytes -= block.bytes;
      live.erase(it);
    }
    now = now + 1;
  }
  return table;
}

std::vector<const Event*> LiveAt(const std::vector<Event>& events, int64_t at) {
  absl::flat_hash_map<BlockId, const Event*> live;
  const int64_t end = std::min(at + 1, static_cast<int64_t>(events.size()));
  for (int64_t i = 0; i < end; ++i) {
    const Event& event = events[static_cast<size_t>(i)];
    if (event.kind == EventKind::kAlloc) live[event.id] = &event;
    if (event.kind == EventKind::kFree) live.erase(event.id);
  }
  std::vector<const Event*> allocs;
  allocs.reserve(live.size());
  for (const auto& [id, alloc] : live) allocs.push_back(alloc);
  return allocs;
}

}  // namespace reprise::profiler
