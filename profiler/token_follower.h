// Walks along past tokens beside the present ones, and steps over a little noise: what matches earns credit, and what does
// not costs some.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/recent_tokens.h"

namespace reprise::profiler {

// The reference is cyclic and goes round in [begin, end), or so far apart that it runs on through the stream.
struct TokenFollower {
  // Out of step it searches this far to either side. Noise shifts by one or two; a layer more or less is another sequence
  // and must not be bridged.
  static constexpr int64_t kMaxShift = 16;
  // Equal tokens in a row that put it back in step, and one more for each token of the shift. Fewer are found anywhere
  // among repeated layers.
  static constexpr int64_t kResyncRun = 4;
  // Credit before it has shown anything.
  static constexpr int64_t kFirstCredit = 64;
  static constexpr int64_t kFar = INT64_MAX / 4;

  enum class State : uint8_t { kInStep, kSearching, kLost };

  int64_t ref = 0;  // the past token that the next one should equal
  int64_t begin = 0;
  int64_t end = 0;
  int64_t credit = 0;  // tolerance left at `credited`; each token since brings one more,
  int64_t cap = 0;     // of which it saves up so many at most,
  int64_t price = 0;   // and a miss costs so many
  int64_t credited = 0;
  int64_t unmatched = 0;  // tokens since it fell out of step: the next one should equal ref + unmatched
  int64_t misses = 0;     // tokens it did not match, those of the present search left out
  State state = State::kLost;

  // Takes the latest token. True when it matched the reference, which is then the one before `ref`.
  bool Follow(const RecentTokens& tokens);
  // Back in step, with all the credit it can have; the next token should equal `reference`.
  void Restart(int64_t reference, int64_t now);

  int64_t length() const { return end - begin; }
  // One step past either side comes back on the other.
  int64_t Wrap(int64_t position) const {
    if (position >= end) return position - length();
    if (position < begin) return position + length();
    return position;
  }

  // The most credit that one of a period of `length` tokens saves up.
  static int64_t CreditCap(int64_t length) { return std::max(length, kFirstCredit); }
  // Shifts to either side, the nearest first: 0, 1, -1, 2 ...
  static int64_t ShiftAt(int64_t step) { return step % 2 == 0 ? -step / 2 : (step + 1) / 2; }

 private:
  bool Resynchronise(const RecentTokens& tokens, int64_t affordable);
};

}  // namespace reprise::profiler
