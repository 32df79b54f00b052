// Problems made from other problems, so that no solver can have been tuned to the ones that everybody
// measures on.
#pragma once

#include <cstdint>

#include "planner/types.h"

namespace reprise::planner {

// The same problem with its buffers in another order.
Problem Shuffled(const Problem& problem, uint64_t seed);
// Every size, capacity and alignment times `sizes`, every tick times `ticks`.
Problem Rescaled(const Problem& problem, int64_t sizes, int64_t ticks);
// Time runs backwards. Not for cycles.
Problem Reversed(const Problem& problem);

// A cycle as long as `iteration`, with blocks added where the least is in use until the least load is `share`
// of the largest: so much lives across every possible cut. The added blocks have sizes of the iteration's own
// and live for up to half of the cycle.
Problem Cycle(const Problem& iteration, double share, uint64_t seed);

// The largest and the least load of a problem over time.
struct LoadRange {
  Bytes least;
  Bytes largest;
};
LoadRange LoadsOf(const Problem& problem);

// What planners without cycles do: blocks that live across the cut with the least bytes across it are kept
// for the whole period, and the rest is linear.
Problem HeldAcrossTheCut(const Problem& cycle);

}  // namespace reprise::planner
