// What the search for a period goes by.
#pragma once

#include <cstdint>

namespace reprise::profiler {

// Shorter repetitions are no iterations worth a plan, and the hash of 8 tokens cannot tell them apart.
inline constexpr int64_t kMinPeriod = 8;

// Each may be taken away, to show what it is for (period_finder_test.cc does); a job has no reason to.
struct PeriodRules {
  bool level = true;          // matches count only at the same live level
  bool swing = true;          // a period swings by half the largest swing seen
  bool hold_back = true;      // a micro-batch that accumulates waits for its step
  bool challenge = true;      // another period has to be better than the confirmed one
  bool doubt = true;          // false alarms raise the evidence asked for
  bool resynchronise = true;  // noise is stepped over
};

}  // namespace reprise::profiler
