// Ejection: who finds no room below a height makes some, and who is ejected looks for room elsewhere.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// Improves the best placement so far (first-fit by size if there is none) after the idea of ejection search
// (Nagata and Bräysy, *A powerful route minimization heuristic for the vehicle routing problem with time
// windows*, 2009). A height below the best slab is aimed at. Whatever ends above it is taken out; then, the
// largest first, each of those is put where the ones in its way cost the least, and these are taken out in
// turn, until nobody is left. Whoever finds no free place becomes more expensive to eject, so that the search
// does not go in circles.
//
// Small buffers go in boxes (boxes.h): they are many and each one says little. Boxes that are slight, low and
// alive for a moment, stay aside until first-fit finds no room for them between the others. First-fit in the
// order of the boxes then places every buffer. The way to the target is tried in one leap of most of it and,
// where that fails, in shorter ones; when those fail too, boxes become finer. For instances of a few thousand
// boxes in which much is in use everywhere, and little fits together by itself, and for what the hybrid leaves
// a little above the bound. Deterministic without random numbers.
//
// On a cycle the first worker begins with the large buffers alone (large_first.h).
Turn BeginEject(Search& search, std::string_view name);
inline constexpr std::string_view kEjectLargeFirst = "eject-large-first";  // the rule's name

}  // namespace reprise::planner
