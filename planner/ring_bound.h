// A bound for cycles whose buffers live for a good part of a round, as micro-batches in flight do.
#pragma once

#include <string_view>

#include "planner/solver.h"

namespace reprise::planner {

// Lifetimes that share a byte follow one another round the ring. Of those that each take more than 1/(k+1) of a round, at most k
// do, so a k-th of what they need together is a bound. It may be far above what is ever in use at once, and above the heaviest
// clique (clique.h), which knows k = 1 alone: five lifetimes of two fifths of a round each, every one begun a fifth after the
// one before, have no three that overlap in pairs, and need as much as two and a half of them.
//
// A round need not be measured by the clock. Mark any points on the ring: who takes more than j/(k+1) of them counts for j/k of
// its size. That is a dual feasible function (Fekete and Schepers, New classes of fast lower bounds for bin packing
// problems, 2001): of what fits into one round it adds up to 1 at most. The ring is divided where
// the first, the second, ... of m equal parts of what lives for long begin, and in each stretch the slot is marked where the most
// of that is in use; which m is best is not known beforehand.
//
// Time: O(buffers + slots) for each of some sets of points. Lifetimes with gaps and pinned buffers are left out, which only
// lowers the bound. Tells the search what it refutes and offers no placement.
Turn BeginRingBound(Search& search, std::string_view name);

}  // namespace reprise::planner
