// A part of an instance as an instance of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// `buffers` of a larger instance, cut to a stretch of its time.
struct Window {
  Instance instance;
  std::vector<int32_t> buffers;  // by index in `instance`: the buffer's index in the larger one
};

// The window of `whole` over the slots of `time`, numbered anew. `free` have all their ranges within it; of
// `pinned`, what lies within it remains, at `offsets` (by index in `whole`). No window is cyclic: a lifetime
// that wraps counts as one with a gap. Linear in the ranges of these buffers and the slots of `time`.
Window Extract(const Instance& whole, Range time, std::span<const int32_t> free,
               std::span<const int32_t> pinned, std::span<const int64_t> offsets);

}  // namespace reprise::planner
