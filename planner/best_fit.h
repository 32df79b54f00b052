// The best-fit heuristic for offset assignment of Sekiyama, Imai, Negishi, Kawachiya and Ushijima,
// "Profile-guided memory optimization for deep neural networks" (2018), which carries the strip-packing
// heuristic of Burke, Kendall and Whitwell (2004) over to lifetimes.
#pragma once

#include <string_view>

#include "planner/search.h"

namespace reprise::planner {

// The placed buffers form a skyline over time. Again and again: take its lowest line; of the unplaced buffers
// whose lifetime lies within the line, put the one with the longest lifetime on it; if there is none, lift
// the line to the lower of its neighbours and merge them. In a cyclic instance the skyline is closed to a
// ring. Pinned buffers divide the addresses into bands: a line is filled with what fits under the next
// obstacle, and lifted over it when nothing does. A pinned buffer that is in use for a part of the time only
// is taken to be there always. About O(n log n).
void BestFit(Search& search, std::string_view name);

}  // namespace reprise::planner
