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
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (!offsets[i]) continue;
    const int32_t buffer = static_cast<int32_t>(i);
    const int64_t lower = problem.buffers[i].lower.count();
    const int64_t upper = problem.buffers[i].upper.count();
    const bool wraps = problem.period && upper > *problem.period;
    events.push_back({lower, true, buffer});
    events.push_back({wraps ? *problem.period : upper, false, buffer});
    if (wraps) {
      events.push_back({0, true, buffer});
      events.push_back({upper - *problem.period, false, buffer});
    }
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

absl::Status CheckPlacement(const Problem& problem, const Placement& placement) {
  if (placement.offsets.size() != problem.buffers.size()) {
    return absl::FailedPreconditionError(fmt::format("the placement has {} offsets for {} buffers",
                                                     placement.offsets.size(), problem.buffers.size()));
  }
  Bytes slab;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const Offset offset = placement.offsets[i];
    if (absl::Status status = CheckOffset(i, buffer, offset); !status.ok()) return status;
    if (!buffer.pinned) slab = std::max(slab, offset + buffer.size - Offset(0));
  }
  const std::vector<std::optional<Offset>> offsets(placement.offsets.begin(), placement.offsets.end());
  if (const std::optional<Overlap> overlap = FirstOverlap(problem, offsets)) {
    return absl::FailedPreconditionError(
        fmt::format("{} and {} overlap at tick {}", Describe(problem, placement, overlap->first),
                    Describe(problem, placement, overlap->second), overlap->tick.count()));
  }
  if (slab != placement.slab) {
    return absl::FailedPreconditionError(fmt::format("the slab is given as {} but its buffers end at {}",
                                                     placement.slab.count(), slab.count()));
  }
  return absl::OkStatus();
}

}  // namespace reprise::planner
