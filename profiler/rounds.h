// What the rounds of an iteration came to, by a second look at the events: where rounds begin is known only when
// the iteration is, and to keep every token until then would take half as much as the events themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/types.h"

namespace reprise::profiler {

// An allocation of fewer is no token. The engine feeds its period finder so.
inline constexpr Bytes kLeastToken{4096};

struct Round {
  Bytes live_before;  // its first token
  Bytes peak;         // live at most until the next round, blocks of all sizes
  bool cut = false;   // it begins with the token of slot 0
};

struct Rounds {
  // Up to the one that begins at the iteration's origin. [0] is what comes before the first whole one, perhaps
  // nothing; a period after the other from there on, whatever they are rounds of.
  std::vector<Round> rounds;
  // For each slot its event, of the round before the origin, which is complete, where it was seen whole.
  std::vector<int64_t> event_of_slot;
};

// `iteration` was extracted from `events`, which must be consistent (event_check.h), and has slots. Memory: the
// live blocks, and what is returned.
Rounds RoundsOf(const std::vector<Event>& events, const Iteration& iteration);

}  // namespace reprise::profiler
