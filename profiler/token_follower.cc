#include "profiler/token_follower.h"

#include <algorithm>
#include <cstdlib>

namespace reprise::profiler {

bool TokenFollower::Follow(const RecentTokens& tokens) {
  if (state == State::kLost) return false;
  if (state == State::kInStep) {
    if (tokens.Same(ref, tokens.now() - 1)) {
      ref = Wrap(ref + 1);
      return true;
    }
    state = State::kSearching;
  }
  ++unmatched;
  // The misses it can afford. Half of the tokens since, less the run, is the least that a late find would cost.
  const int64_t affordable = std::min(cap, credit + tokens.now() - credited) / price;
  if (Resynchronise(tokens, affordable)) return true;
  if (affordable == 0 || unmatched > 2 * std::min(affordable, kMaxShift) + kResyncRun) {
    state = State::kLost;
    misses += unmatched;
    unmatched = 0;
  }
  return false;
}

// Looks for the nearest reference at which the latest tokens match. Tokens inserted now shift the reference
// back, tokens that did not come shift it ahead, a changed token leaves it. The farther the shift, the longer
// the run that has to show it: repeated layers offer many.
bool TokenFollower::Resynchronise(const RecentTokens& tokens, int64_t affordable) {
  if (!tokens.rules().resynchronise) return false;
  const int64_t latest = tokens.now() - 1;
  const int64_t straight = ref + unmatched - 1;
  const int64_t farthest = std::min({kMaxShift, affordable, unmatched - kResyncRun});
  for (int64_t step = 0; step <= 2 * farthest; ++step) {
    const int64_t shift = ShiftAt(step);
    const int64_t found = Wrap(straight + shift);
    if (latest - found < kMinPeriod) continue;
    const int64_t needed = kResyncRun + std::abs(shift);
    int64_t run = 0;
    while (run < needed && tokens.Same(Wrap(found - run), latest - run)) ++run;
    if (run < needed) continue;
    const int64_t missed = std::max<int64_t>({1, unmatched - run, std::abs(shift)});
    if (missed > affordable) continue;
    credit = std::min(cap, credit + tokens.now() - credited) - price * missed;
    credited = tokens.now();
    misses += missed;
    ref = Wrap(found + 1);
    unmatched = 0;
    state = State::kInStep;
    return true;
  }
  return false;
}

void TokenFollower::Restart(int64_t reference, int64_t now) {
  ref = reference;
  misses += unmatched;
  unmatched = 0;
  credit = cap;
  credited = now;
  state = State::kInStep;
}

}  // namespace reprise::profiler
