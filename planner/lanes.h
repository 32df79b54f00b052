// Lanes: when memory may not, or should rather not, go from one stream to another.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "planner/types.h"

namespace reprise::planner {

using SolveFunction = std::function<absl::StatusOr<Solution>(const Problem&, const Budget&)>;

// For Reuse::kForbidden: each lane is a problem of its own, laid on top of the one before, the tallest at the
// bottom. `solve` answers problems whose lanes do not matter; the budget's time and steps are divided among
// the lanes by their numbers of buffers. The capacity is for the last lane only: those below it go as low as
// they can, and where one is set they keep no previous offsets. After a cancel, or once the time is over, the
// lanes still to come are laid by one pass of first-fit, as long as one lane is laid. The slab need not be the least
// of all where there are obstacles or alignments: one order of the lanes is tried. One lane alone, or none, is `solve`'s.
absl::StatusOr<Solution> SolveApart(const Problem& problem, const Budget& budget, const SolveFunction& solve);

// For Reuse::kPriced: of several placements the one with the least slab + crossings * price. The candidates
// are the lowest one whatever it crosses, the lanes apart, and between these what avoids crossings as long as
// the slab stays under one of several limits; one within the capacity goes before one that is not. A cancel
// once the lowest is found leaves out what is not there yet; without one, what lies between is tried for a
// second at most once the time is over. The bound is that of the slab alone, so that only a placement without
// crossings can be proven optimal. Of one lane alone the lowest placement has all of the budget.
absl::StatusOr<Solution> SolvePriced(const Problem& problem, const Budget& budget,
                                     const SolveFunction& solve);

}  // namespace reprise::planner
