// What a stream of events amounts to: peak, sizes, iterations. For people; nothing is decided by it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
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

// Freed blocks that lived for [from, 2 * from); the first class begins at 0.
struct LifetimeClass {
  int64_t from = 0;
  int64_t blocks = 0;
  Bytes bytes;
};

// How what stays from one iteration to the next grows: a line through the live bytes at the cuts, by least
// squares.
struct Leak {
  double bytes_per_iteration = 0;
  int64_t cuts = 0;  // that the line goes through, at least kLeastCuts
};
inline constexpr int64_t kLeastCuts = 3;

// The live peaks of complete iterations.
struct IterationPeaks {
  Bytes least;
  Bytes most;
  int64_t rounds = 0;
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
  std::optional<Leak> leak;                 // none: too few cuts were seen
  std::optional<IterationPeaks> peaks;      // none: no complete iteration was seen
  std::vector<LifetimeClass> lifetimes;     // ascending; classes without a block are left out
  bool lifetimes_in_us = false;             // microseconds, where the events have times; else events
};

// The iteration that the statistics speak of, and for each of its slots the event of one allocation there.
struct FoundIteration {
  Iteration iteration;
  std::vector<int64_t> event_of_slot;
};

// `events` must be consistent (event_check.h). Linear but for the sizes live at the peak, which are sorted.
// `found` gets the iteration where there is one; it may be null.
Stats StatsOf(const std::vector<Event>& events, FoundIteration* found = nullptr);

// What is live right after the event `at`, by size: most bytes first, then largest size first.
std::vector<SizeCount> SizesLiveAt(const std::vector<Event>& events, int64_t at);

// Counts a block that lived for `length`, below 0 as 0, into its class of `classes`, which stays ascending.
void CountLifetime(int64_t length, Bytes bytes, std::vector<LifetimeClass>& classes);

}  // namespace reprise::profiler
