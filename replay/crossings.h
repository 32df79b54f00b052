// Where a plan hands memory from one stream to another.
//
// A slot's place may be taken over by a slot of another stream. That one has to wait for an event recorded at
// the free (stream_order.h), so which frees record one is decided when the plan is made.
#pragma once

#include <vector>

#include "replay/serving_plan.h"

namespace reprise::replay {

// By slot: whether a part of its place is next taken, in this round or the following, by a slot of a stream
// other than the one that frees it. `freed_on` by slot. O(n log n).
std::vector<bool> FindCrossings(const ServingPlan& plan, const std::vector<Stream>& freed_on);

}  // namespace reprise::replay
