// A solver on the large buffers alone, and first-fit for the small ones around them.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// Of the whole area, what the large buffers make up.
inline constexpr double kAreaOfLarge = 0.8;

// The largest, that make up `area` of the whole, are a problem of their own, with a bound of their own, and the solver
// that `begin` stands for is to bring them down to it. What they waste is lost to all; the small ones fit in
// nearly everywhere, and each time that the large ones lie lower first-fit puts the small ones around them.
// The solver begins from nothing, and not with what is best so far: there the large ones lie spread over the
// whole height, with holes between them that only small ones fit. Has nothing more to offer after so many
// steps as a few moves of each large buffer take, if one looks at all others; so the problem is better worked
// on as a whole afterwards.
//
// Memory: a copy of the instance.
Turn BeginLargeFirst(Search& search, std::string_view name, Turn (*begin)(Search&, std::string_view),
                     double area = kAreaOfLarge);

}  // namespace reprise::planner
