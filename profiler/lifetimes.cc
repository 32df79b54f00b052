#include "profiler/lifetimes.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "profiler/live_allocations.h"

namespace reprise::profiler {

std::vector<BlockLifetime> LifetimesOf(const std::vector<Event>& events) {
  std::vector<BlockLifetime> blocks;
  blocks.reserve(static_cast<size_t>(std::ranges::count(events, EventKind::kAlloc, &Event::kind)));
  absl::flat_hash_map<BlockId, size_t> live;  // where a block stands among them
  const Tick end(static_cast<int64_t>(events.size()));
  Tick now;
  for (const Event& event : events) {
    if (event.kind == EventKind::kAlloc) {
      live.emplace(event.id, blocks.size());
      blocks.push_back({now, end});
    } else if (event.kind == EventKind::kFree) {
      const auto it = live.find(event.id);
      blocks[it->second].free = now;
      live.erase(it);
    }
    now = now + 1;
  }
  return blocks;
}

LivePeak LivePeakOf(const std::vector<Event>& events) {
  LivePeak peak;
  LiveAllocations live;
  for (size_t i = 0; i < events.size(); ++i) {
    live.Add(events[i]);
    if (live.bytes() > peak.bytes) peak = {live.bytes(), static_cast<int64_t>(i)};
  }
  return peak;
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
