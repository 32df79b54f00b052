// A problem made ready for solving: checked, and its time compressed into slots.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "planner/types.h"

namespace reprise::planner {

// Says what is wrong with `problem`, naming the buffer by its index: a size or an alignment below 1, an empty
// lifetime, a lifetime that breaks the rules of a cyclic problem, a negative pinned offset, two pinned
// buffers that overlap, sums of sizes that could overflow an offset. Every other function of the planner
// takes a problem that passed.
absl::Status Validate(const Problem& problem);

// The instance that solvers see. Time is cut into slots: a maximal run of starts followed by a run of ends,
// so that two lifetimes overlap exactly if their slots do, and there are at most as many slots as buffers
// (one more when cyclic). A lifetime that wraps has end > slots and covers [begin, slots) and [0, end -
// slots). Flat arrays, one entry a buffer, all in the order of Problem::buffers.
struct Instance {
  static constexpr int64_t kFree = -1;  // `pinned` of a buffer whose offset is to be chosen

  int32_t slots = 0;
  bool cyclic = false;
  std::vector<int32_t> begin;  // in [0, slots)
  std::vector<int32_t> end;    // in (begin, slots]; cyclic: in (begin, begin + slots]
  std::vector<int64_t> size;
  std::vector<int64_t> alignment;
  std::vector<int64_t> pinned;  // an offset, or kFree

  int32_t buffers() const { return static_cast<int32_t>(size.size()); }
  bool is_free(int32_t buffer) const { return pinned[buffer] == kFree; }
  int32_t length(int32_t buffer) const { return end[buffer] - begin[buffer]; }
};

// O(n log n) in the number of buffers.
Instance Compress(const Problem& problem);

// The sum of the sizes in use in each slot, pinned buffers included. O(buffers + slots).
std::vector<int64_t> LoadOfSlots(const Instance& instance);

}  // namespace reprise::planner
