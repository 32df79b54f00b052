// How low a slab can be at best.
#pragma once

#include "planner/problem.h"
#include "planner/types.h"

namespace reprise::planner {

// The largest sum of sizes in use at one tick, pinned buffers included.
Bytes MaxLive(const Problem& problem);

// A height that the slab of no placement can be below: over all ticks, the largest height under which there
// is just enough room for the free buffers in use, after the pinned ones have taken theirs. What lies above
// the slab wastes nothing, so a pinned buffer counts only as far as the slab must reach past it; without
// pinned buffers this is MaxLive. When every offset is a multiple of some g > 1, a buffer also wastes the
// bytes up to the next multiple, the topmost one excepted. 0 when every buffer is pinned. O(n log n).
Bytes LowerBound(const Problem& problem);
Bytes LowerBound(const Instance& instance);

// slab / bound - 1, and 0 when both are 0.
double Gap(Bytes slab, Bytes bound);

}  // namespace reprise::planner
