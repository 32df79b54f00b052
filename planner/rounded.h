// First-fit that takes sizes which are nearly the same for the same.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// What differs by a few bytes in size does not fit where the other one has been, and as more and more follow upon each
// other what is left between them is in many pieces. So sizes are rounded up to the largest of their class, as in an
// allocator with size classes; what is of one size first-fit lays by its starts without any loss on a line. Then all
// settle with the sizes that they have. Whoever is to be in a class with others depends on the problem: a class ends
// where the next size is a quarter less than its largest, then an eighth, then a sixteenth.
//
// Memory: a copy of the instance while at work.
Turn BeginRounded(Search& search, std::string_view name);

}  // namespace reprise::planner
