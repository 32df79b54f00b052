// Division by time: for problems too large to be looked at as a whole more than once.
#pragma once

#include <span>
#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// Buffers that begin in a stretch.
struct StretchSize {
  int32_t least = 5000;
  int32_t most = 32000;
};

// Cuts time where little is in use, places what crosses a cut first (where the most of it crosses, the
// longest lifetimes at the bottom), and then each stretch between two cuts on its own, around what crosses
// it. A stretch is small enough for the processor's caches and for many attempts, and only the highest one
// decides: again and again, it gets the next attempt. (As in large neighbourhood search, Shaw, *Using
// constraint programming and local search methods to solve vehicle routing problems*, 1998, with
// neighbourhoods that do not overlap.)
//
// An attempt is one of `members` or first-fit by some classes (planner/orders.h). Stretches are often alike,
// so that attempts are ranked by what they reached so far: the stretch with the largest load tries several,
// and all others begin with the best. With one stretch only, this is the first member. Every attempt is
// linear but for a logarithm; the memory is that of the instance and one stretch.
Turn BeginDivide(Search& search, std::string_view name, std::span<const Solver> members,
                 StretchSize size = {});

}  // namespace reprise::planner
