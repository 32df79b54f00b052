#include "planner/problem.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

// All buffers on top of each other above the highest obstacle must stay below this, with room for sums of
// two.
constexpr int64_t kMaxHeight = std::numeric_limits<int64_t>::max() / 4;
constexpr size_t kMaxBuffers = std::numeric_limits<int32_t>::max() / 4;

template <typename... Args>
absl::Status Fault(size_t buffer, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("buffer {}: {}", buffer, fmt::format(format, std::forward<Args>(args)...)));
}

absl::Status CheckLifetime(size_t index, const Buffer& buffer, std::optional<int64_t> period) {
  const int64_t lower = buffer.lower.count();
  const int64_t upper = buffer.upper.count();
  if (upper <= lower) {
    return Fault(index, "its lifetime [{}, {}) is empty; upper must be above lower", lower, upper);
  }
  if (!period) return absl::OkStatus();
  if (lower < 0 || lower >= *period) {
    return Fault(index, "its lifetime begins at {}, outside of the cycle [0, {})", lower, *period);
  }
  if (upper - lower > *period) {
    return Fault(index, "its lifetime [{}, {}) is longer than the cycle of {} ticks", lower, upper, *period);
  }
  return absl::OkStatus();
}

absl::Status CheckExtent(size_t index, const Buffer& buffer) {
  if (buffer.size.count() <= 0) {
    return Fault(index, "its size is {}; it must be at least 1", buffer.size.count());
  }
  if (buffer.alignment.count() <= 0) {
    return Fault(index, "its alignment is {}; it must be at least 1", buffer.alignment.count());
  }
  if (buffer.pinned && buffer.pinned->count() < 0) {
    return Fault(index, "it is pinned at the negative offset {}", buffer.pinned->count());
  }
  return absl::OkStatus();
}

// The height if everything were stacked must fit an offset, so that no solver needs to check its sums.
absl::Status CheckHeight(const Problem& problem) {
  int64_t obstacles = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.pinned) continue;
    const int64_t offset = buffer.pinned->count();
    if (offset > kMaxHeight || buffer.size.count() > kMaxHeight - offset) {
      return Fault(i, "pinned at {} with size {}, it ends beyond the largest offset {}", offset,
                   buffer.size.count(), kMaxHeight);
    }
    obstacles = std::max(obstacles, offset + buffer.size.count());
  }
  int64_t left = kMaxHeight - obstacles;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    for (int64_t part : {buffer.size.count(), buffer.alignment.count()}) {
      if (part > left) {
        return Fault(i, "the sum of all sizes and alignments overflows the largest offset {} here",
                     kMaxHeight);
      }
      left -= part;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPinned(const Problem& problem) {
  std::vector<std::optional<Offset>> pinned;
  pinned.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) pinned.push_back(buffer.pinned);
  const std::optional<Overlap> overlap = FirstOverlap(problem, pinned);
  if (!overlap) return absl::OkStatus();
  return Fault(overlap->first, "pinned, it overlaps buffer {}, pinned as well, at tick {}", overlap->second,
               overlap->tick.count());
}

// One contiguous piece of a lifetime, within the cycle when there is one.
struct Piece {
  int64_t lower;
  int64_t upper;
  int32_t begin;  // slots
  int32_t end;
};

// Gives each piece its slots and returns how many there are: a new slot begins where a start follows an end.
int32_t NumberSlots(std::vector<Piece>& pieces) {
  const int32_t n = static_cast<int32_t>(pieces.size());
  std::vector<int32_t> starts(n);
  for (int32_t i = 0; i < n; ++i) starts[i] = i;
  std::vector<int32_t> ends = starts;
  std::sort(starts.begin(), starts.end(),
            [&](int32_t a, int32_t b) { return pieces[a].lower < pieces[b].lower; });
  std::sort(ends.begin(), ends.end(),
            [&](int32_t a, int32_t b) { return pieces[a].upper < pieces[b].upper; });
  int32_t slot = 0;
  bool after_end = false;
  int32_t ended = 0;
  for (int32_t start : starts) {
    for (; pieces[ends[ended]].upper <= pieces[start].lower; ++ended) {
      pieces[ends[ended]].end = slot + 1;
      after_end = true;
    }
    if (after_end) ++slot;
    after_end = false;
    pieces[start].begin = slot;
  }
  for (; ended < n; ++ended) pieces[ends[ended]].end = slot + 1;
  return n == 0 ? 0 : slot + 1;
}

}  // namespace

absl::Status Validate(const Problem& problem) {
  if (problem.period && *problem.period <= 0) {
    return absl::InvalidArgumentError(
        fmt::format("the period of the cycle is {}; it must be at least 1 tick", *problem.period));
  }
  if (problem.capacity && problem.capacity->count() <= 0) {
    return absl::InvalidArgumentError(
        fmt::format("the capacity is {}; it must be at least 1 byte", problem.capacity->count()));
  }
  if (problem.buffers.size() > kMaxBuffers) {
    return absl::InvalidArgumentError(fmt::format("{} buffers are too many; the planner counts to {}",
                                                  problem.buffers.size(), kMaxBuffers));
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (absl::Status status = CheckLifetime(i, buffer, problem.period); !status.ok()) return status;
    if (absl::Status status = CheckExtent(i, buffer); !status.ok()) return status;
  }
  if (absl::Status status = CheckHeight(problem); !status.ok()) return status;
  return CheckPinned(problem);
}

Instance Compress(const Problem& problem) {
  const int32_t n = static_cast<int32_t>(problem.buffers.size());
  const int64_t period = problem.period.value_or(0);
  Instance instance;
  instance.cyclic = problem.period.has_value();
  std::vector<Piece> pieces;
  pieces.reserve(n);
  for (const Buffer& buffer : problem.buffers) {
    pieces.push_back({buffer.lower.count(), buffer.upper.count(), 0, 0});
    instance.size.push_back(buffer.size.count());
    instance.alignment.push_back(buffer.alignment.count());
    instance.pinned.push_back(buffer.pinned ? buffer.pinned->count() : Instance::kFree);
  }
  std::vector<int32_t> rest(n, -1);  // the piece after the wrap
  if (instance.cyclic) {
    for (int32_t i = 0; i < n; ++i) {
      if (pieces[i].upper <= period) continue;
      rest[i] = static_cast<int32_t>(pieces.size());
      pieces.push_back({0, pieces[i].upper - period, 0, 0});
      pieces[i].upper = period;
    }
  }
  instance.slots = NumberSlots(pieces);
  for (int32_t i = 0; i < n; ++i) {
    instance.begin.push_back(pieces[i].begin);
    instance.end.push_back(rest[i] < 0 ? pieces[i].end : instance.slots + pieces[rest[i]].end);
  }
  return instance;
}

std::vector<int64_t> LoadOfSlots(const Instance& instance) {
  std::vector<int64_t> load(instance.slots + 1, 0);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    const bool wraps = instance.end[i] > instance.slots;
    load[instance.begin[i]] += instance.size[i];
    load[wraps ? instance.end[i] - instance.slots : instance.end[i]] -= instance.size[i];
    if (wraps) load[0] += instance.size[i];
  }
  for (int32_t slot = 1; slot <= instance.slots; ++slot) load[slot] += load[slot - 1];
  load.pop_back();
  return load;
}

}  // namespace reprise::planner
