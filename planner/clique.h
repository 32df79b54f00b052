// A bound for cycles that is above the largest load: lifetimes that overlap pairwise, at different times.
#pragma once

#include <string_view>

#include "planner/solver.h"

namespace reprise::planner {

// On a line, intervals that overlap pairwise have a moment in common, and the largest load is the bound. On a
// ring they need not: three lifetimes that each last for more than a third of a cycle can overlap pairwise
// and yet never all at once. No two of them can share a byte, so what they need together is a bound too: the
// heaviest clique of a circular-arc graph. Tells the search what it refutes and offers no placement.
//
// In a clique, take a lifetime within which no other one lies. All others then hold its first slot or its
// last one. Those that hold the same one overlap; what does not overlap is in two classes, so the heaviest
// choice is a heaviest independent set of a bipartite graph, that is, all without a largest flow through the
// pairs that do not overlap (Gavril, Algorithms on circular-arc graphs, 1974; Hsu, Maximum weight clique
// algorithms for circular-arc graphs and circle graphs, 1985). Such a pair is one that is ordered at both
// ends, so the flow is a greedy one. O(n log n) for each such lifetime, those first where the most is in use
// at both ends. Lifetimes with gaps and pinned buffers are left out, which only lowers the bound.
Turn BeginClique(Search& search, std::string_view name);

}  // namespace reprise::planner
