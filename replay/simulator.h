// Feeds recorded events through the real engine and arena: what would have been served, planned and reserved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/types.h"
#include "replay/engine.h"
#include "replay/track.h"

namespace reprise::replay {

// What CUDA's drivers give memory in.
inline constexpr Bytes kDeviceGranule = kMiB * 2;

// planner::Solve with as much work as a job would have time for, however long it takes here: what it comes to is the same on a
// busy machine.
absl::StatusOr<planner::Solution> SolveByWork(const planner::Problem& problem, const planner::Budget& budget);

struct SimulationOptions {
  Bytes capacity{0};               // the most bytes of granules to commit; 0: no limit
  Bytes granule = kDeviceGranule;  // a power of two, from kUnit to a GiB
  double plan_seconds = 1.0;       // budget of one planning, on a machine with nothing else to do
  bool second_run = false;         // beginning with the plans that a run of the same events has left
  // Allocations by which the device and the planner are behind the job. 0: a device without streams, which is done
  // with whatever is freed.
  int64_t behind = 0;
  // What the engine does without, to show what it is for.
  Sequence::Rules sequence_rules{};
  Arena::Rules arena_rules{};
  profiler::PeriodFinder::Rules period_rules{};
  Watch watch{};
};

struct SimulationResult {
  Counters counters;
  Bytes reserved_peak;            // as the memory source counted it, recording included
  Bytes granule;                  // in which it came
  int64_t memory_calls = 0;       // that took memory from it
  int64_t overlaps = 0;           // as an independent checker counted them
  double planned_after_plan = 0;  // share of the requests of at least kSmallBlock after the first adoption
  double planned_bytes_after_plan = 0;  // and by bytes
  std::vector<Sequence::Known> plans;   // known at the end
  double seconds = 0;                   // wall time of the whole simulation
  bool stopped = false;                 // told to (SimulationOptions::watch); the rest was not simulated
};

// `events`: a consistent sequence (a free names a live block). Marks are not consulted. Unless the planner is behind, a plan
// is ready at the request after the one that asked for it. InvalidArgument: a granule that no source has.
absl::StatusOr<SimulationResult> Simulate(std::span<const profiler::Event> events,
                                          const SimulationOptions& options);

}  // namespace reprise::replay
