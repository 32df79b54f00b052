// Next-fit for what lives long, first-fit for the rest.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/problem.h"
#include "planner/search.h"

namespace reprise::planner {

// The length in slots from which on a buffer counts as long-lived: of the two classes of lengths, those within one differ
// the least in their logarithm (Otsu, *A threshold selection method from gray-level histograms*, 1979). 0 where all
// free buffers live equally long, or there is none.
int32_t LeastOfLong(const Instance& instance);

// Where micro-batches pass through a pipeline, what waits is a queue: it leaves in the order in which it came. First-fit
// puts each one where there is room, and in between lies what lives for a moment; soon holes are everywhere. Next-fit goes
// round instead: each one comes on top of the one before, and at the bottom again where it would end above a height, so that
// what leaves makes room in one piece. The long-lived go round alone, which is one pass over them, in the order of their starts,
// in runs by their ends, and so backwards in time; each at the least height that it is found to need. In the way that needs the
// least they settle from the bottom up, and first-fit puts the others around them, the largest first. Lines only: on a cycle
// it does nothing.
void PlaceLongByNextFit(Search& search, std::string_view name);

}  // namespace reprise::planner
