// Whether the latest round of a history repeats exactly. The finder steps over noise, and may have found a period with some
// of it inside: a plan made of such a round would have a stray allocation in it and lack the one that this has pushed out,
// in every round.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "profiler/iteration.h"

namespace reprise::profiler {

// Whether the tokens of the latest round of `period`, and a few more, each with its live level, are those one round
// before. O(period).
bool RepeatsExactly(const History& history, int64_t period);

// After how many tokens a whole round of the latest ones repeats exactly: `period`, or the least that is shorter; 0 when
// none is known to. O(period).
int64_t ExactPeriod(const History& history, int64_t period);

// Where the tokens that have come again after `period` others began, as far as they are remembered. O(history).
Tick FirstRound(const History& history, int64_t period);

}  // namespace reprise::profiler
