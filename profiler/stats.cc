#include "profiler/stats.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "profiler/iteration.h"
#include "profiler/lifetimes.h"
#include "profiler/line_fit.h"
#include "profiler/period_finder.h"
#include "profiler/rounds.h"

namespace reprise::profiler {
namespace {

struct LiveBlock {
  Bytes bytes;
  int64_t born = 0;  // index of its event, or microseconds
  Tick token{-1};    // its token in the history; -1: too small to be one
};

// Follows the stream with the live blocks, the period finder and its history.
class Follower {
 public:
  explicit Follower(bool timed) { stats_.lifetimes_in_us = timed; }

  void Add(const Event& event, int64_t index) {
    if (event.kind == EventKind::kAlloc) {
      Alloc(event, index);
    } else if (event.kind == EventKind::kFree) {
      Free(event, index);
    } else {
      ++stats_.marks;
    }
  }

  Stats Finish(const std::vector<Event>& events, FoundIteration* found) {
    if (finder_.confirmed() && finder_.in_step()) Extract();  // more rounds are known now
    if (stats_.iteration) MeasureRounds(RoundsOf(events, iteration_), found);
    stats_.events = static_cast<int64_t>(events.size());
    stats_.live_at_end = live_bytes_;
    stats_.iterations = finder_.iterations();
    for (const SizeClass& size_class : classes_) {
      if (size_class.blocks > 0) stats_.histogram.push_back(size_class);
    }
    return std::move(stats_);
  }

 private:
  void Alloc(const Event& event, int64_t index) {
    LiveBlock block{event.bytes, When(event, index), Tick(-1)};
    if (event.bytes >= kLeastToken) {
      const bool found = finder_.OnAlloc(event.bytes, event.stream, live_bytes_);
      block.token = history_.OnAlloc(event.bytes, event.alignment, event.stream, live_bytes_);
      history_.Reserve(finder_.capacity());
      if (found) {
        if (!stats_.iteration) {
          first_found_ = index;
          first_token_ = block.token;
        }
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

  void Free(const Event& event, int64_t index) {
    ++stats_.frees;
    const auto it = live_.find(event.id);
    if (it == live_.end()) return;
    CountLifetime(When(event, index) - it->second.born, it->second.bytes, stats_.lifetimes);
    if (it->second.token >= Tick(0)) history_.OnFree(it->second.token, event.stream);
    live_bytes_ -= it->second.bytes;
    live_.erase(it);
  }

  void Extract() {
    Iteration iteration = ExtractIteration(history_, *finder_.confirmed());
    if (iteration.slots.empty()) return;
    IterationStats stats{.tokens = iteration.period, .first = first_found_};
    stats.persistent = history_.at(iteration.origin).live_before;
    for (const Slot& slot : iteration.slots) stats.allocated += slot.bytes;
    stats_.iteration = stats;
    iteration_ = std::move(iteration);
  }

  void MeasureRounds(Rounds seen, FoundIteration* found) {
    const std::vector<Round>& rounds = seen.rounds;
    // One whole round: the one before the latest instance of the cut, which may just have begun.
    const Round& whole = rounds[rounds.size() - 2];
    stats_.iteration->peak = whole.peak;
    // What was live when it began, so that the one is on top of the other: by the latest cut a leak has added to that.
    if (whole.cut) stats_.iteration->persistent = whole.live_before;
    FollowCuts(rounds);
    if (found == nullptr) return;
    found->event_of_slot = std::move(seen.event_of_slot);
    found->iteration = std::move(iteration_);
  }

  // Backwards from the latest, as long as the token of the cut is found there and the period had been confirmed:
  // before, a job creates what it keeps.
  void FollowCuts(const std::vector<Round>& rounds) {
    std::vector<Measurement> levels;
    Tick tick = iteration_.origin;
    for (size_t i = rounds.size() - 1; i > 0 && rounds[i].cut && tick >= first_token_; --i) {
      if (!levels.empty()) AddPeak(rounds[i].peak);
      levels.push_back({.x = -static_cast<double>(levels.size()),
                        .y = static_cast<double>(rounds[i].live_before.count())});
      tick = tick - iteration_.period;
    }
    if (static_cast<int64_t>(levels.size()) < kLeastCuts) return;
    stats_.leak = {LeastSquares(levels).slope, static_cast<int64_t>(levels.size())};
  }

  void AddPeak(Bytes peak) {
    if (!stats_.peaks) stats_.peaks = {.least = peak, .most = peak};
    stats_.peaks->least = std::min(stats_.peaks->least, peak);
    stats_.peaks->most = std::max(stats_.peaks->most, peak);
    ++stats_.peaks->rounds;
  }

  int64_t When(const Event& event, int64_t index) const {
    return stats_.lifetimes_in_us ? event.time_ns / 1000 : index;
  }

  Stats stats_;
  PeriodFinder finder_;
  History history_;
  absl::flat_hash_map<BlockId, LiveBlock> live_;
  Bytes live_bytes_;
  int64_t first_found_ = 0;
  Tick first_token_;     // the one at which the first period was confirmed
  Iteration iteration_;  // as last extracted
  SizeClass classes_[64];
};

}  // namespace

Stats StatsOf(const std::vector<Event>& events, FoundIteration* found) {
  Follower follower(!events.empty() && events.back().time_ns > 0);
  for (size_t i = 0; i < events.size(); ++i) follower.Add(events[i], static_cast<int64_t>(i));
  Stats stats = follower.Finish(events, found);
  // A second pass costs less than keeping the sizes of every new peak.
  if (stats.allocs > 0) stats.at_peak = SizesLiveAt(events, stats.peak_at);
  return stats;
}

std::vector<SizeCount> SizesLiveAt(const std::vector<Event>& events, int64_t at) {
  std::map<Bytes, int64_t> counts;
  for (const Event* alloc : LiveAt(events, at)) ++counts[alloc->bytes];
  std::vector<SizeCount> sizes;
  sizes.reserve(counts.size());
  for (const auto& [size, blocks] : counts) sizes.push_back({size, blocks});
  std::sort(sizes.begin(), sizes.end(), [](const SizeCount& a, const SizeCount& b) {
    return std::tuple(a.size * a.blocks, a.size) > std::tuple(b.size * b.blocks, b.size);
  });
  return sizes;
}

void CountLifetime(int64_t length, Bytes bytes, std::vector<LifetimeClass>& classes) {
  const int64_t from = length <= 0 ? 0 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length)));
  auto it = std::ranges::lower_bound(classes, from, {}, &LifetimeClass::from);
  if (it == classes.end() || it->from != from) it = classes.insert(it, {.from = from});
  ++it->blocks;
  it->bytes += bytes;
}

}  // namespace reprise::profiler
