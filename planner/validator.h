// The judge: shares no code with any solver and trusts nothing they say.
#pragma once

#include <optional>
#include <span>

#include "absl/status/status.h"
#include "planner/types.h"

namespace reprise::planner {

// Two buffers that share bytes at a tick.
struct Overlap {
  int32_t first;
  int32_t second;
  Tick tick;  // where both are in use
};

// OK if `placement` is a correct answer to `problem` (which passed Validate): one offset a buffer, none
// negative or overflowing, aligned, pinned buffers where they are pinned, no two buffers sharing bytes at any
// tick, and the slab what it says. Otherwise FailedPrecondition naming the first fault: for an overlap both
// buffers with their offsets and lifetimes, which `found` is told of as well. One sweep over time, O(n log n),
// linear memory.
absl::Status CheckPlacement(const Problem& problem, const Placement& placement,
                            std::optional<Overlap>* found = nullptr);

// The earliest overlap among the buffers with an offset; buffers without one are left out.
std::optional<Overlap> FirstOverlap(const Problem& problem, std::span<const std::optional<Offset>> offsets);

}  // namespace reprise::planner
