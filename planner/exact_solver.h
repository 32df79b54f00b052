// The exact search as a member of the portfolio.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// Asks exact.h for a placement at the target. While that is not decided, every other turn goes to heights
// between the bound and the best placement: halfway first, then nearer to the best one each time that a turn
// has not been enough, and from the middle again when a placement was found or a height refuted. What is
// refuted raises the bound, to the next height that sums of sizes can have. Offers nothing for instances that
// exact.h does not look at, and on a thread whose stack is too small for one of so many buffers.
Turn BeginExact(Search& search, std::string_view name);

}  // namespace reprise::planner
