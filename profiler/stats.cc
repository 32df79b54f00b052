#include "profiler/stats.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"

namespace reprise::profiler {
namespace {

constexpr Bytes kLeastToken{4096};  // the period finder's, as the engine feeds it

struct LiveBlock {
  Bytes bytes;
  Tick token{-1};  // its token in the history; -1: too small to be one
};

IterationStats StatsOfIteration(const History& history, const Iteration& iteration) {
  IterationStats stats;
  stats.tokens = iteration.period;
  stats.persistent = history.at(iteration.origin).live_before;
  for (const Slot& slot : iteration.slots) stats.allocated += slot.bytes;
  // One whole round: the one before the latest instance of the cut, which may just have begun.
  for (Tick tick = iteration.origin - iteration.period; tick < iteration.origin; tick = tick + 1) {
    if (tick < history.oldest()) continue;
    const History::Entry& entry = history.at(tick);
    stats.peak = std::max(stats.peak, entry.live_before + entry.bytes);
  }
  return stats;
}

// Follows the stream with the live blocks, the period finder and its history.
class Follower {
 public:
  void Add(const Event& event, int64_t index) {
    if (event.kind == EventKind::kAlloc) {
      Alloc(event, index);
    } else if (event.kind == EventKind::kFree) {
      Free(event);
    } else {
      ++stats_.marks;
    }
  }

  Stats Finish(int64_t events) {
    if (finder_.confirmed() && finder_.in_step()) Extract();  // more rounds are known now
    stats_.events = events;
    stats_.live_at_end = live_bytes_;
    stats_.iterations = finder_.iterations();
    for (const SizeClass& size_class : classes_) {
      if (size_class.blocks > 0) stats_.histogram.push_back(size_class);
    }
    return std::move(stats_);
  }

 private:
  void Alloc(const Event& event, int64_t index) {
    LiveBlock block{event.bytes, Tick(-1)};
    if (event.bytes >= kLeastToken) {
      const bool found = finder_.OnAlloc(event.bytes, event.stream, live_bytes_);
      block.token = history_.OnAlloc(event.bytes, event.alignment, event.stream, live_bytes_);
      history_.Reserve(finder_.capacity());
      if (found) {
        if (!stats_.iteration) first_found_ = index;
        Extract();
      }
    }
    live_[event.id] = block;
    live_bytes_ += event.bytes;
    ++stats_.allocs;
    stats_.allocated += event.bytes;
    if (live_bytes_ > stats_.live_peak) {
      stats_.live_peak = live_bytes_;
      stats_.peak_at = index;
    }
    const uint64_t from = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, event.bytes.count())));
    SizeClass& size_class = classes_[static_cast<size_t>(std::countr_zero(from))];
    size_class.from = Bytes(static_cast<int64_t>(from));
    ++size_class.blocks;
    size_class.bytes += event.bytes;
  }

  void Free(const Event& event) {
    ++stats_.frees;
    const auto it = live_.find(event.id);
    if (it == live_.end()) return;
    if (it->second.token >= Tick(0)) history_.OnFree(it->second.token, event.stream);
    live_bytes_ -= it->second.bytes;
    live_.erase(it);
  }

  void Extract() {
    const Iteration iteration = ExtractIteration(history_, *finder_.confirmed());
    if (iteration.slots.empty()) return;
    stats_.iteration = StatsOfIteration(history_, iteration);
    stats_.iteration->first = first_found_;
  }

  Stats stats_;
  PeriodFinder finder_;
  History history_;
  absl::flat_hash_map<BlockId, LiveBlock> live_;
  Bytes live_bytes_;
  int64_t first_found_ = 0;
  SizeClass classes_[64];
};

// The blocks live right after the event `at`, by size. A second pass costs less than keeping the sizes of
// every new peak.
std::vector<SizeCount> SizesLiveAt(const std::vector<Event>& events, int64_t at) {
  absl::flat_hash_map<BlockId, Bytes> live;
  for (int64_t i = 0; i <= at; ++i) {
    const Event& event = events[static_cast<size_t>(i)];
    if (event.kind == EventKind::kAlloc) live[event.id] = event.bytes;
    if (event.kind == EventKind::kFree) live.erase(event.id);
  }
  std::map<Bytes, int64_t> counts;
  for (const auto& [id, bytes] : live) ++counts[bytes];
  std::vector<SizeCount> sizes;
  sizes.reserve(counts.size());
  for (const auto& [size, blocks] : counts) sizes.push_back({size, blocks});
  std::sort(sizes.begin(), sizes.end(), [](const SizeCount& a, const SizeCount& b) {
    return std::tuple(a.size * a.blocks, a.size) > std::tuple(b.size * b.blocks, b.size);
  });
  return sizes;
}

}  // namespace

Stats StatsOf(const std::vector<Event>& events) {
  Follower follower;
  for (size_t i = 0; i < events.size(); ++i) follower.Add(events[i], static_cast<int64_t>(i));
  Stats stats = follower.Finish(static_cast<int64_t>(events.size()));
  if (stats.allocs > 0) stats.at_peak = SizesLiveAt(events, stats.peak_at);
  return stats;
}

}  // namespace reprise::profiler
