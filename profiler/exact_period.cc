#include "profiler/exact_period.h"

#include <algorithm>

#include "profiler/period_rules.h"

namespace reprise::profiler {
namespace {

// Live levels are the same that are apart by less than this part of them.
constexpr int64_t kLevelTolerance = 64;
// A look for an exact period costs at most so many comparisons a token of it: long runs of equal allocations
// would make it quadratic, and the job waits meanwhile.
constexpr int64_t kLooksAToken = 8;

// Over just one round, a stray allocation before it looks like a part of the period.
int64_t TokensOfARound(int64_t period) { return period + kMinPeriod; }

bool SameToken(const History::Entry& a, const History::Entry& b) {
  return a.bytes == b.bytes && a.stream == b.stream;
}

// Each token looked at takes one of `looks`; where none is left, it is not known to repeat.
bool Repeats(const History& history, int64_t tokens, int64_t lag, int64_t& looks) {
  const Tick now = history.now();
  if (now - tokens - lag < history.oldest()) return false;
  for (Tick t = now - 1; t >= now - tokens; t = t - 1) {
    if (--looks < 0) return false;
    const History::Entry& latest = history.at(t);
    const History::Entry& before = history.at(t - lag);
    if (!SameToken(latest, before)) return false;
    const Bytes level = std::max(latest.live_before, before.live_before);
    const Bytes apart = level - std::min(latest.live_before, before.live_before);
    if (apart * kLevelTolerance > level) return false;
  }
  return true;
}

}  // namespace

bool RepeatsExactly(const History& history, int64_t period) {
  int64_t looks = TokensOfARound(period);
  return Repeats(history, TokensOfARound(period), period, looks);
}

int64_t ExactPeriod(const History& history, int64_t period) {
  const int64_t tokens = TokensOfARound(period);
  int64_t looks = kLooksAToken * tokens;
  if (Repeats(history, tokens, period, looks)) return period;
  for (int64_t lag = kMinPeriod; lag < period && looks > 0; ++lag) {
    if (Repeats(history, tokens, lag, looks)) return lag;
  }
  return 0;
}

Tick FirstRound(const History& history, int64_t period) {
  Tick first = history.now() - period;
  while (first > history.oldest() && SameToken(history.at(first - 1), history.at(first - 1 + period))) {
    first = first - 1;
  }
  return first;
}

}  // namespace reprise::profiler
