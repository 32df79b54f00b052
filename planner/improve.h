// Squeaky wheel: who comes out too high goes first the next time.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// Improves the best placement so far (first-fit by size if there is none) after the idea of squeaky wheel
// optimization (Joslin and Clements, 1999), beginning with an order in which first-fit leads to that
// placement. Round by round: place in order, with one byte less than the best slab as the limit; the buffer
// that would end above the limit moves forward by a random share of its way to the front. A round that
// completes is a better placement and its order the new beginning. When many rounds have failed, the order
// starts over; when very many have, the solver gives up. Random numbers come from the search's seed.
Turn BeginImprove(Search& search, std::string_view name);

}  // namespace reprise::planner
