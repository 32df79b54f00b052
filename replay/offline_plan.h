// The plan of a found iteration, made outside a job: what the engine would lay out, for people to look at.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/stats.h"

namespace reprise::replay {

struct OfflinePlan {
  // A block of the cycle. Time is in tokens from the cut; begin + length may lie past the period, and wraps.
  struct Block {
    int64_t begin = 0;
    int64_t length = 0;
    Offset offset;
    Bytes size;         // as asked for
    int64_t event = 0;  // of one of its allocations
  };
  int64_t period = 0;  // tokens, of all rounds
  int64_t rounds = 1;  // more where blocks live for longer than one
  std::vector<Block> blocks;
  Bytes live_at_cut;       // of these blocks; what else is live there lies beside the slab
  int64_t persistent = 0;  // slots that are no part of the plan
  Bytes slab;
  Bytes lower_bound;
  bool proven_optimal = false;
};

// Takes about `seconds`. Errors: the planner's.
absl::StatusOr<OfflinePlan> PlanFound(const profiler::FoundIteration& found, double seconds);

}  // namespace reprise::replay
