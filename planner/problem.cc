#include "planner/problem.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "planner/radix_sort.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

constexpr size_t kMaxBuffers = std::numeric_limits<int32_t>::max() / 4;

template <typename... Args>
absl::Status Fault(const BufferName& name, size_t buffer, fmt::format_string<Args...> format,
                   Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", name(buffer), fmt::format(format, std::forward<Args>(args)...)));
}

absl::Status CheckLifetime(const BufferName& name, size_t index, const Buffer& buffer,
                           std::optional<int64_t> period) {
  const int64_t lower = buffer.lower.count();
  const int64_t upper = buffer.upper.count();
  if (upper <= lower) {
    return Fault(name, index, "its lifetime [{}, {}) is empty; upper must be above lower", lower, upper);
  }
  if (!period) return absl::OkStatus();
  if (lower < 0 || lower >= *period) {
    return Fault(name, index, "its lifetime begins at {}, outside of the cycle [0, {})", lower, *period);
  }
  if (upper - lower > *period) {
    return Fault(name, index, "its lifetime [{}, {}) is longer than the cycle of {} ticks; unroll the cycle",
                 lower, upper, *period);
  }
  return absl::OkStatus();
}

absl::Status CheckGaps(const BufferName& name, size_t index, const Buffer& buffer) {
  Tick from = buffer.lower;  // the last gap's end, where the bytes are in use again
  for (const LifetimeGap& gap : buffer.gaps) {
    if (gap.upper <= gap.lower || gap.lower <= from || gap.upper >= buffer.upper) {
      return Fault(name, index,
                   "its gap [{}, {}) is empty, out of order, or not strictly within its lifetime [{}, {})",
                   gap.lower.count(), gap.upper.count(), buffer.lower.count(), buffer.upper.count());
    }
    from = gap.upper;
  }
  return absl::OkStatus();
}

absl::Status CheckExtent(const BufferName& name, size_t index, const Buffer& buffer) {
  if (buffer.size.count() <= 0) {
    return Fault(name, index, "its size is {}; it must be at least 1", buffer.size.count());
  }
  if (buffer.alignment.count() <= 0) {
    return Fault(name, index, "its alignment is {}; it must be at least 1", buffer.alignment.count());
  }
  if (buffer.pinned && buffer.pinned->count() < 0) {
    return Fault(name, index, "it is pinned at the negative offset {}", buffer.pinned->count());
  }
  if (buffer.pinned && buffer.outside) return Fault(name, index, "it is both pinned and outside");
  return absl::OkStatus();
}

// The height if everything were stacked must fit an offset, so that no solver needs to check its sums. Nobody
// adds up what is outside, and what is pinned counts by where it ends.
absl::Status CheckHeight(const BufferName& name, const Problem& problem) {
  int64_t obstacles = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.pinned) continue;
    const int64_t offset = buffer.pinned->count();
    if (offset > kMostHeight || buffer.size.count() > kMostHeight - offset) {
      return Fault(name, i, "pinned at {} with size {}, it ends beyond the largest offset {}", offset,
                   buffer.size.count(), kMostHeight);
    }
    obstacles = std::max(obstacles, offset + buffer.size.count());
  }
  int64_t left = kMostHeight - obstacles;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    int64_t alone = kMostHeight;
    int64_t& room = buffer.outside || buffer.pinned ? alone : left;
    for (int64_t part : {buffer.size.count(), buffer.alignment.count()}) {
      if (part > room) {
        return Fault(name, i, "the sum of all sizes and alignments overflows the largest offset {} here",
                     kMostHeight);
      }
      room -= part;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPinned(const BufferName& name, const Problem& problem) {
  const auto is_pinned = [](const Buffer& buffer) { return buffer.pinned.has_value(); };
  if (std::none_of(problem.buffers.begin(), problem.buffers.end(), is_pinned)) return absl::OkStatus();
  std::vector<std::optional<Offset>> pinned;
  pinned.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) pinned.push_back(buffer.pinned);
  const std::optional<Overlap> overlap = FirstOverlap(problem, pinned);
  if (!overlap) return absl::OkStatus();
  return Fault(name, overlap->first, "pinned, it overlaps {}, pinned as well, at tick {}",
               name(overlap->second), overlap->tick.count());
}

// One contiguous piece of a lifetime, within the cycle when there is one.
struct Piece {
  int64_t lower;
  int64_t upper;
  Range slots;
};

// The pieces of all lifetimes, those of one buffer together, in order of time from its start on.
class Pieces {
 public:
  explicit Pieces(const Problem& problem) : period_(problem.period) {
    pieces_.reserve(problem.buffers.size());
    first_.reserve(problem.buffers.size() + 1);
    for (const Buffer& buffer : problem.buffers) {
      first_.push_back(static_cast<int32_t>(pieces_.size()));
      if (buffer.outside) continue;
      int64_t from = buffer.lower.count();
      for (const LifetimeGap& gap : buffer.gaps) {
        Add(from, gap.lower.count());
        from = gap.upper.count();
      }
      Add(from, buffer.upper.count());
    }
    first_.push_back(static_cast<int32_t>(pieces_.size()));
  }

  // Gives each piece its slots and returns how many there are: a new slot begins where a start follows an
  // end.
  int32_t NumberSlots() {
    const int32_t n = static_cast<int32_t>(pieces_.size());
    std::vector<int32_t> starts(n);
    std::iota(starts.begin(), starts.end(), 0);
    std::vector<int32_t> ends = starts;
    // Ticks may be negative: from the largest negative to the largest positive one, as if unsigned.
    constexpr uint64_t kSign = uint64_t{1} << 63;
    RadixSort(starts, [&](int32_t i) { return static_cast<uint64_t>(pieces_[i].lower) ^ kSign; });
    RadixSort(ends, [&](int32_t i) { return static_cast<uint64_t>(pieces_[i].upper) ^ kSign; });
    int32_t slot = 0;
    bool after_end = false;
    int32_t ended = 0;
    for (int32_t start : starts) {
      for (; pieces_[ends[ended]].upper <= pieces_[start].lower; ++ended) {
        pieces_[ends[ended]].slots.end = slot + 1;
        after_end = true;
      }
      if (after_end) ++slot;
      after_end = false;
      pieces_[start].slots.begin = slot;
    }
    for (; ended < n; ++ended) pieces_[ends[ended]].slots.end = slot + 1;
    return n == 0 ? 0 : slot + 1;
  }

  std::span<const Piece> Of(int32_t buffer) const {
    return std::span(pieces_).subspan(first_[buffer], first_[buffer + 1] - first_[buffer]);
  }

 private:
  void Add(int64_t lower, int64_t upper) {
    if (!period_) return pieces_.push_back({lower, upper, {}});
    if (lower >= *period_) return pieces_.push_back({lower - *period_, upper - *period_, {}});
    pieces_.push_back({lower, std::min(upper, *period_), {}});
    if (upper > *period_) pieces_.push_back({0, upper - *period_, {}});
  }

  const std::optional<int64_t> period_;
  std::vector<Piece> pieces_;
  std::vector<int32_t> first_;
};

// Sorts the ranges from `first` on and joins those that touch.
void Normalise(std::vector<Range>& ranges, size_t first) {
  if (ranges.size() - first < 2) return;
  std::sort(ranges.begin() + static_cast<std::ptrdiff_t>(first), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t kept = first;
  for (size_t k = first + 1; k < ranges.size(); ++k) {
    if (ranges[k].begin <= ranges[kept].end) {
      ranges[kept].end = std::max(ranges[kept].end, ranges[k].end);
    } else {
      ranges[++kept] = ranges[k];
    }
  }
  ranges.resize(kept + 1);
}

// The slot of a cycle with the least bytes in use across its begin: those in use on both sides of it.
int32_t QuietestBegin(const Instance& instance) {
  std::vector<int64_t> across(instance.slots + 1, 0);  // as differences
  // Pinned ones that only their gaps keep apart may be more together than an offset can be.
  const int64_t most = kMostHeight / std::max(instance.buffers(), 1);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.length(i) % instance.slots == 0) continue;  // always there, or never
    // The boundaries within the lifetime, gaps included: what wraps there has one offset on both sides.
    const int32_t first = instance.begin[i] + 1;
    const int32_t last = instance.end[i];  // one past; modulo slots
    const int64_t bytes = std::min(instance.size[i], most);
    across[std::min(first, instance.slots)] += bytes;
    across[std::min(last, instance.slots)] -= bytes;
    if (last > instance.slots) {
      across[0] += bytes;
      across[last - instance.slots] -= bytes;
    }
  }
  for (int32_t slot = 1; slot < instance.slots; ++slot) across[slot] += across[slot - 1];
  return static_cast<int32_t>(std::min_element(across.begin(), across.end() - 1) - across.begin());
}

// Lets the cycle begin at slot `origin`.
void TurnCycle(int32_t origin, Instance& instance) {
  const int32_t slots = instance.slots;
  bool wraps = false;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    const int32_t length = instance.length(i);
    instance.begin[i] = length % slots == 0 ? 0 : (instance.begin[i] - origin + slots) % slots;
    instance.end[i] = instance.begin[i] + length;
    wraps |= instance.end[i] > slots;
  }
  instance.cyclic = wraps;
  std::vector<Range> turned;
  std::vector<int32_t> first;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    first.push_back(static_cast<int32_t>(turned.size()));
    for (const Range& range : instance.ranges(i)) {
      const int32_t begin = (range.begin - origin + slots) % slots;
      const int32_t end = begin + range.end - range.begin;
      turned.push_back({begin, std::min(end, slots)});
      if (end > slots) turned.push_back({0, end - slots});
    }
    Normalise(turned, first.back());
  }
  first.push_back(static_cast<int32_t>(turned.size()));
  instance.all_ranges = std::move(turned);
  instance.first_range = std::move(first);
}

}  // namespace

std::string NumberOfBuffer(size_t buffer) { return fmt::format("buffer {}", buffer); }

absl::Status Validate(const Problem& problem, const BufferName& name) {
  if (problem.period && *problem.period <= 0) {
    return absl::InvalidArgumentError(
        fmt::format("the period of the cycle is {}; it must be at least 1 tick", *problem.period));
  }
  if (problem.capacity && problem.capacity->count() <= 0) {
    return absl::InvalidArgumentError(
        fmt::format("the capacity is {}; it must be at least 1 byte", problem.capacity->count()));
  }
  size_t pieces = problem.buffers.size();
  for (const Buffer& buffer : problem.buffers) pieces += buffer.gaps.size();
  if (pieces > kMaxBuffers) {
    return absl::InvalidArgumentError(
        fmt::format("{} buffers and gaps are too many; the planner counts to {}", pieces, kMaxBuffers));
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (absl::Status status = CheckLifetime(name, i, buffer, problem.period); !status.ok()) return status;
    if (absl::Status status = CheckExtent(name, i, buffer); !status.ok()) return status;
    if (absl::Status status = CheckGaps(name, i, buffer); !status.ok()) return status;
  }
  if (absl::Status status = CheckHeight(name, problem); !status.ok()) return status;
  return CheckPinned(name, problem);
}

Problem Unrolled(const Problem& problem, int32_t times) {
  Problem unrolled = problem;
  unrolled.period = *problem.period * times;
  for (int32_t k = 1; k < times; ++k) {
    const int64_t later = k * *problem.period;
    for (Buffer buffer : problem.buffers) {
      buffer.lower = buffer.lower + later;
      buffer.upper = buffer.upper + later;
      for (LifetimeGap& gap : buffer.gaps) gap = {gap.lower + later, gap.upper + later};
      unrolled.buffers.push_back(std::move(buffer));
    }
  }
  return unrolled;
}

Instance Compress(const Problem& problem, bool turn_cycles) {
  const int32_t n = static_cast<int32_t>(problem.buffers.size());
  Instance instance;
  instance.cyclic = problem.period.has_value();
  Pieces pieces(problem);
  instance.slots = pieces.NumberSlots();
  for (std::vector<int32_t>* column : {&instance.begin, &instance.end}) column->reserve(n);
  for (std::vector<int64_t>* column : {&instance.size, &instance.alignment, &instance.pinned})
    column->reserve(n);
  instance.first_range.reserve(n + 1);
  instance.all_ranges.reserve(n);
  for (int32_t i = 0; i < n; ++i) {
    const Buffer& buffer = problem.buffers[i];
    instance.size.push_back(buffer.size.count());
    instance.alignment.push_back(buffer.alignment.count());
    instance.pinned.push_back(buffer.outside  ? Instance::kOutside
                              : buffer.pinned ? buffer.pinned->count()
                                              : Instance::kFree);
    instance.first_range.push_back(static_cast<int32_t>(instance.all_ranges.size()));
    const std::span<const Piece> own = pieces.Of(i);
    const int32_t begin = own.empty() ? 0 : own.front().slots.begin;
    const int32_t end = own.empty() ? 0 : own.back().slots.end;
    instance.begin.push_back(begin);
    instance.end.push_back(own.empty() || own.back().upper > own.front().lower ? end : instance.slots + end);
    for (const Piece& piece : own) instance.all_ranges.push_back(piece.slots);
    Normalise(instance.all_ranges, instance.first_range.back());
  }
  instance.first_range.push_back(static_cast<int32_t>(instance.all_ranges.size()));
  if (instance.cyclic && instance.slots > 0) TurnCycle(turn_cycles ? QuietestBegin(instance) : 0, instance);
  return instance;
}

bool ShareSlot(std::span<const Range> a, std::span<const Range> b) {
  while (!a.empty() && !b.empty()) {
    if (a.front().begin < b.front().end && b.front().begin < a.front().end) return true;
    std::span<const Range>& earlier = a.front().end < b.front().end ? a : b;
    earlier = earlier.subspan(1);
  }
  return false;
}

std::vector<int32_t> FreeBuffers(const Instance& instance) {
  std::vector<int32_t> free;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) free.push_back(i);
  }
  return free;
}

std::vector<int32_t> PinnedBuffers(const Instance& instance) {
  std::vector<int32_t> pinned;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) pinned.push_back(i);
  }
  std::ranges::stable_sort(pinned, {}, [&](int32_t i) { return instance.pinned[i]; });
  return pinned;
}

int64_t CommonAlignment(const Instance& instance) {
  int64_t grain = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) grain = std::gcd(grain, instance.alignment[i]);
  }
  return std::max<int64_t>(grain, 1);
}

std::vector<int64_t> LoadOfSlots(const Instance& instance) {
  return LoadOfSlots(instance, [](int32_t) { return true; });
}

std::vector<int64_t> LoadOfSlots(const Instance& instance, absl::FunctionRef<bool(int32_t)> counts) {
  std::vector<int64_t> load(instance.slots + 1, 0);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!counts(i)) continue;
    for (const Range& range : instance.ranges(i)) {
      load[range.begin] += instance.size[i];
      load[range.end] -= instance.size[i];
    }
  }
  for (int32_t slot = 1; slot <= instance.slots; ++slot) load[slot] += load[slot - 1];
  load.pop_back();
  return load;
}

}  // namespace reprise::planner
