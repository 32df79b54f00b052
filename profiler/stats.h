// What a stream of events amounts to: peak, sizes, iterations. For people; nothing is decided by it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "profiler/types.h"

namespace reprise::profiler {

// Blocks of [from, 2 * from) bytes.
struct SizeClass {
  Bytes from;
  int64_t blocks = 0;
  Bytes bytes;
};

// Blocks of one size that are live at the peak.
struct SizeCount {
  Bytes size;
  int64_t blocks = 0;
  friend bool operator==(const SizeCount&, const SizeCount&) = default;
};

// One round of the cycle that the period finder confirmed last.
struct IterationStats {
  int64_t tokens = 0;
  Bytes persistent;   // live at the cut: what stays from one iteration to the next
  Bytes peak;         // live at most in one round, persistent bytes included
  Bytes allocated;    // by one round, blocks under the token threshold not counted
  int64_t first = 0;  // index of the event before which the first period was confirmed
};

struct Stats {
  int64_t events = 0;
  int64_t allocs = 0;
  int64_t frees = 0;
  int64_t marks = 0;
  Bytes allocated;      // all allocations together
  Bytes live_peak;      // requested bytes live at once, at most
  int64_t peak_at = 0;  // index of the first event that reached it; 0 when there is no allocation
  Bytes live_at_end;
  std::vector<SizeClass> histogram;         // ascending; classes without a block are left out
  std::vector<SizeCount> at_peak;           // most bytes first, then largest size first
  int64_t iterations = 0;                   // complete ones
  std::optional<IterationStats> iteration;  // none: no period was found
};

// `events` must be consistent (event_check.h). Linear but for the sizes live at the peak, which are sorted.
Stats StatsOf(const std::vector<Event>& events);

}  // namespace reprise::profiler
