// Large buffers by a skyline that looks ahead, small ones by first-fit into what is left.
#pragma once

#include <string_view>

#include "planner/rules.h"
#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// The large buffers decide how high a placement gets, and are few; the small ones fill holes, and are many.
// So those of at least some share of the target are laid by Skyline, and first-fit then takes them from the
// bottom to the top, which lets them settle, and after them the rest by size. Where hardly anything is free
// at some moment, the small ones that live then are as hard to place: four of the nine splits count them as
// large. Which split and which rank are best differs from instance to instance: all pairs are tried, then
// again with noise on the ranks, drawn from the search's seed, with as much work for each split, until the
// search stops. A try is given up as soon as it cannot beat the best placement so far.
//
// Memory: a copy of the large ones of each split, of two million buffers in all.
Turn BeginHybrid(Search& search, std::string_view name, const HybridRules& rules);
Turn BeginHybrid(Search& search, std::string_view name);  // by the rules that the search has

}  // namespace reprise::planner
