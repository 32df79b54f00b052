// A problem made ready for solving: checked, and its time compressed into slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "planner/types.h"

namespace reprise::planner {

// What a message calls a buffer, by its index: the number is all that the planner knows of it.
using BufferName = std::function<std::string(size_t)>;
std::string NumberOfBuffer(size_t buffer);  // "buffer N"

// All buffers on top of each other above the highest obstacle must stay below this, with room for sums of two.
inline constexpr int64_t kMostHeight = std::numeric_limits<int64_t>::max() / 4;

// Says what is wrong with `problem`, naming the buffer: a size or an alignment below 1, an empty
// lifetime, a lifetime that breaks the rules of a cyclic problem, a gap that is not within the lifetime, a
// negative pinned offset, two pinned buffers that overlap, sums of sizes that could overflow an offset. Every
// other function of the planner takes a problem that passed.
absl::Status Validate(const Problem& problem, const BufferName& name = NumberOfBuffer);

// The cycle `times` times in a row, as one of `times` periods: buffer b of the k-th is buffer k * n + b. What
// lives longer than one period needs several places, taken in turn, and so has no one offset in its own
// cycle; in a cycle of as many periods as it lives for, each of its blocks has one.
Problem Unrolled(const Problem& problem, int32_t times);

// Consecutive slots.
struct Range {
  int32_t begin;
  int32_t end;  // > begin
  friend bool operator==(const Range&, const Range&) = default;
};

// `value` rounded up to a multiple of `step` (step > 0; no division where it is 1).
inline int64_t RoundUpTo(int64_t value, int64_t step) {
  return step == 1 ? value : (value + step - 1) / step * step;
}

// The instance that solvers see. Time is cut into slots: a maximal run of starts followed by a run of ends,
// so that two lifetimes overlap exactly if their slots do, and there are at most as many slots as buffers
// (plus one a wrapped lifetime and one a gap). A cycle is turned so that it begins where the least bytes are
// in use across a boundary between two slots; when these are none, the instance is not cyclic any more. Flat
// arrays, one entry a buffer, all in the order of Problem::buffers.
//
// The slots of a buffer are its ranges: disjoint, ascending, within [0, slots). Nearly always it is one; a
// lifetime that wraps has two, one with gaps one more a gap, a buffer outside has none.
struct Instance {
  static constexpr int64_t kFree = -2;  // `pinned` of a buffer whose offset is to be chosen
  static constexpr int64_t kOutside = planner::kOutside.count();

  int32_t slots = 0;
  bool cyclic = false;
  // The whole lifetime, gaps included. One that wraps has end > slots and covers [begin, slots) and [0, end -
  // slots).
  std::vector<int32_t> begin;  // in [0, slots)
  std::vector<int32_t> end;    // in (begin, slots]; cyclic: in (begin, begin + slots]
  std::vector<int64_t> size;
  std::vector<int64_t> alignment;
  std::vector<int64_t> pinned;  // an offset, kFree or kOutside
  std::vector<Range> all_ranges;
  std::vector<int32_t> first_range;  // buffers + 1 indices into all_ranges

  int32_t buffers() const { return static_cast<int32_t>(size.size()); }
  bool is_free(int32_t buffer) const { return pinned[buffer] == kFree; }
  bool is_pinned(int32_t buffer) const { return pinned[buffer] >= 0; }
  int32_t length(int32_t buffer) const { return end[buffer] - begin[buffer]; }
  // What it takes of the addresses where its neighbours are aligned alike.
  int64_t room(int32_t buffer) const { return RoundUpTo(size[buffer], alignment[buffer]); }
  std::span<const Range> ranges(int32_t buffer) const {
    return std::span(all_ranges).subspan(first_range[buffer], first_range[buffer + 1] - first_range[buffer]);
  }
};

// In order of their indices.
std::vector<int32_t> FreeBuffers(const Instance& instance);

// From the bottom up.
std::vector<int32_t> PinnedBuffers(const Instance& instance);

// The largest number that the alignment of every free buffer is a multiple of; 1 where none is free.
int64_t CommonAlignment(const Instance& instance);

// Do two buffers, given by their ranges, have a slot in common? Linear in the ranges.
bool ShareSlot(std::span<const Range> a, std::span<const Range> b);

// Linear in the number of buffers: their times are sorted by digits. `turn_cycles`: whether a cycle begins
// where the least is in use across, or at its first tick.
Instance Compress(const Problem& problem, bool turn_cycles = true);
inline constexpr std::string_view kTurnCycles = "turn-cycles";  // the rule's name

// The sum of the sizes in use in each slot, pinned buffers included. O(buffers + slots).
std::vector<int64_t> LoadOfSlots(const Instance& instance);
// The same of those buffers alone that `counts` holds for.
std::vector<int64_t> LoadOfSlots(const Instance& instance, absl::FunctionRef<bool(int32_t)> counts);

}  // namespace reprise::planner
