#include "planner/validator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace reprise::planner {
namespace {

// A buffer's bytes come into use or go out of it.
struct Event {
  int64_t tick;
  bool starts;
  int32_t buffer;
};

// In order of time; at one tick the ends come before the starts.
std::vector<Event> EventsOf(const Problem& problem, std::span<const std::optional<Offset>> offsets) {
  std::vector<Event> events;
  events.reserve(2 * offsets.size());
  int32_t index = 0;
  const auto use = [&](int64_t lower, int64_t upper) {
    events.push_back({lower, true, index});
    events.push_back({upper, false, index});
  };
  const auto use_in_cycle = [&](int64_t lower, int64_t upper) {
    if (!problem.period || upper <= *problem.period) return use(lower, upper);
    if (lower >= *problem.period) return use(lower - *problem.period, upper - *problem.period);
    use(lower, *problem.period);
    use(0, upper - *problem.period);
  };
  for (; index < static_cast<int32_t>(offsets.size()); ++index) {
    if (!offsets[index]) continue;
    const Buffer& buffer = problem.buffers[index];
    int64_t in_use_from = buffer.lower.count();
    for (const LifetimeGap& gap : buffer.gaps) {
      use_in_cycle(in_use_from, gap.lower.count());
      in_use_from = gap.upper.count();
    }
    use_in_cycle(in_use_from, buffer.upper.count());
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.starts < b.starts;
  });
  return events;
}

std::string Describe(const Problem& problem, const Placement& placement, int32_t index) {
  const Buffer& buffer = problem.buffers[index];
  const int64_t offset = placement.offsets[index].count();
  return fmt::format("buffer {} (bytes [{}, {}), ticks [{}, {}))", index, offset,
                     offset + buffer.size.count(), buffer.lower.count(), buffer.upper.count());
}

absl::Status CheckOffset(size_t index, const Buffer& buffer, Offset offset) {
  const auto fault = [&](std::string_view what) {
    return absl::FailedPreconditionError(
        fmt::format("buffer {} at offset {}: {}", index, offset.count(), what));
  };
  if (buffer.outside) return offset == kOutside ? absl::OkStatus() : fault("the buffer is to stay outside");
  if (offset.count() < 0) return fault("the offset is negative");
  if (offset.count() > std::numeric_limits<int64_t>::max() - buffer.size.count()) {
    return fault(fmt::format("offset plus size {} overflows", buffer.size.count()));
  }
  if (buffer.pinned && *buffer.pinned != offset) {
    return fault(fmt::format("the buffer is pinned at {}", buffer.pinned->count()));
  }
  if (!buffer.pinned && offset.count() % buffer.alignment.count() != 0) {
    return fault(fmt::format("the offset is not a multiple of the alignment {}", buffer.alignment.count()));
  }
  return absl::OkStatus();
}

// Two buffers of different lanes that share a byte at whatever time, when that is forbidden.
absl::Status CheckLanes(const Problem& problem, const Placement& placement) {
  if (problem.reuse != Reuse::kForbidden) return absl::OkStatus();
  std::vector<int32_t> from_below;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (!problem.buffers[i].pinned && !problem.buffers[i].outside)
      from_below.push_back(static_cast<int32_t>(i));
  }
  std::sort(from_below.begin(), from_below.end(),
            [&](int32_t a, int32_t b) { return placement.offsets[a] < placement.offsets[b]; });
  const auto end_of = [&](int32_t i) { return placement.offsets[i] + problem.buffers[i].size; };
  // Of the buffers below, the one that reaches highest, and the one that does in the other lanes.
  std::optional<int32_t> highest, highest_of_others;
  for (const int32_t i : from_below) {
    const int32_t lane = problem.buffers[i].lane;
    const auto rival = highest && problem.buffers[*highest].lane != lane ? highest : highest_of_others;
    if (rival && end_of(*rival) > placement.offsets[i]) {
      return absl::FailedPreconditionError(
          fmt::format("{} of lane {} and {} of lane {} share bytes", Describe(problem, placement, *rival),
                      problem.buffers[*rival].lane, Describe(problem, placement, i), lane));
    }
    if (!highest || end_of(i) > end_of(*highest)) {
      if (highest && problem.buffers[*highest].lane != lane) highest_of_others = highest;
      highest = i;
    } else if (problem.buffers[*highest].lane != lane &&
               (!highest_of_others || end_of(i) > end_of(*highest_of_others))) {
      highest_of_others = i;
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Overlap> FirstOverlap(const Problem& problem, std::span<const std::optional<Offset>> offsets) {
  std::map<int64_t, int32_t> live;  // by first byte; disjoint as long as no overlap was found
  const auto end_of = [&](auto entry) { return entry->first + problem.buffers[entry->second].size.count(); };
  for (const Event& event : EventsOf(problem, offsets)) {
    const int64_t begin = offsets[event.buffer]->count();
    if (!event.starts) {
      live.erase(begin);
      continue;
    }
    const int64_t end = begin + problem.buffers[event.buffer].size.count();
    const auto next = live.lower_bound(begin);
    if (next != live.begin() && end_of(std::prev(next)) > begin) {
      return Overlap{std::prev(next)->second, event.buffer, Tick(event.tick)};
    }
    if (next != live.end() && next->first < end) return Overlap{next->second, event.buffer, Tick(event.tick)};
    live.emplace_hint(next, begin, event.buffer);
  }
  return std::nullopt;
}

absl::Status CheckPlacement(const Problem& problem, const Placement& placement,
                            std::optional<Overlap>* found) {
  if (placement.offsets.size() != problem.buffers.size()) {
    return absl::FailedPreconditionError(fmt::format("the placement has {} offsets for {} buffers",
                                                     placement.offsets.size(), problem.buffers.size()));
  }
  Bytes slab;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const Offset offset = placement.offsets[i];
    if (absl::Status status = CheckOffset(i, buffer, offset); !status.ok()) return status;
    if (!buffer.pinned && !buffer.outside) slab = std::max(slab, offset + buffer.size - Offset(0));
  }
  std::vector<std::optional<Offset>> offsets(placement.offsets.begin(), placement.offsets.end());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (problem.buffers[i].outside) offsets[i].reset();
  }
  if (const std::optional<Overlap> overlap = FirstOverlap(problem, offsets)) {
    if (found != nullptr) *found = overlap;
    return absl::FailedPreconditionError(
        fmt::format("{} and {} overlap at tick {}", Describe(problem, placement, overlap->first),
                    Describe(problem, placement, overlap->second), overlap->tick.count()));
  }
  if (slab != placement.slab) {
    return absl::FailedPreconditionError(fmt::format("the slab is given as {} but its buffers end at {}",
                                                     placement.slab.count(), slab.count()));
  }
  return CheckLanes(problem, placement);
}

}  // namespace reprise::planner
