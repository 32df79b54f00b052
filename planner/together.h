// What lives long beside what leaves with it, first-fit for the rest.
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

// Where micro-batches pass through a pipeline, what waits comes and goes in batches. First-fit puts each one where there is
// room, and in between lies what lives for a moment; soon holes are everywhere. Here the long-lived are laid alone, one after
// the other as they come, each beside the neighbour that leaves at the time that is nearest to its own leaving: so what leaves
// together leaves one hole. That is done below a height: the first of some that is enough, backwards in time, and then lower
// ones, forwards and backwards. They settle from the bottom up, and first-fit puts the others around them, the largest first.
// Lines only: on a cycle it does nothing. O(n log n), but for the holes on the way, for each of some heights.
void PlaceLongTogether(Search& search, std::string_view name);

}  // namespace reprise::planner
