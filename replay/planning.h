// From a found iteration to a plan the engine can adopt.
//
// The one place where the profiler's iteration becomes a planner's problem. The engine builds a request under
// its lock, a runner solves it elsewhere, and the candidate that comes back is adopted at the cut.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "planner/portfolio.h"
#include "planner/types.h"
#include "profiler/iteration.h"
#include "replay/matcher.h"
#include "replay/obstacles.h"
#include "replay/ranges.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// What is to be solved: the iteration's blocks as cyclic buffers around the obstacles.
//
// Blocks asked for on a stream and blocks asked for without one are lanes that share nothing: what a stream
// has just freed is not to be had without waiting for the device.
//
// Where blocks live for longer than a round, the cycle that is planned is several rounds, so many that what lives for two and what
// lives for three need few places.
//
// Where it is one round and takes turns with others (obstacles.h), the problem is one slot longer: it is behind the last one, what the cycle has
// at its end is live in it, and so is all that the others have.
struct PlanRequest {
  profiler::Iteration iteration;  // `period` and `slots` over all these rounds
  planner::Problem problem;  // first a buffer for each planned slot, then, pinned, one for each obstacle and
                             // for each place of others
  std::vector<uint32_t> slot_of;    // by buffer, pinned ones aside: its slot in the iteration
  bool keeps_lag = true;            // where several streams run at once, they still do (stream_lag.h)
  Bytes most_to_be_had{INT64_MAX};  // of memory: no lag takes more
  Bytes besides;  // what the job will have that is no obstacle: of what is held a lag may take a part
  // Whether the plan may lie in a range of its own (laying.h): there is no other that shares its places.
  bool may_lie_beside = false;
  Bytes granule = kUnit;                         // in which memory is held
  Offset addresses = Offset(0) + kLargestRange;  // where they end
};

// Slots that are persistent get no buffer: they stay outside the plan.
PlanRequest MakeRequest(profiler::Iteration iteration, const std::vector<Obstacle>& obstacles,
                        const std::vector<OtherPlan>& others = {});

// Where the cycle is one that has been planned before, the planner is advised to leave each block where `had`
// has it: what lies there stays, and other plans have been laid around it. Otherwise two plans that take
// turns push each other aside for ever.
void KeepPlaces(const ServingPlan& had, PlanRequest& request);

// A slot as a buffer that begins at `time`.
planner::Buffer BufferOf(const profiler::Slot& slot, int64_t time);

// Sets of each planned slot of a cycle whether its place goes to another stream next.
void MarkCrossings(std::span<const profiler::Slot> cycle, std::vector<ServingPlan::Slot>& slots);

// Sets a plan's swing, and of each slot whether who was elsewhere may come in there: a round has just begun, or little of
// the cycle is live.
void MarkEntries(ServingPlan& plan);

// Where the highest of a cycle's planned slots ends.
Offset EndOf(std::span<const profiler::Slot> cycle, std::span<const ServingPlan::Slot> slots);

// What `base` of MoveTo has to be a multiple of, beside `granule`: each block's alignment. All are powers of two.
Bytes StepFor(const ServingPlan& plan, Bytes granule);

// The plan, which begins with the arena, from `base` on.
void MoveTo(Offset base, ServingPlan& plan);

// The request's slots as a placement of its problem has them.
ServingPlan PlanOf(const PlanRequest& request, const planner::Placement& placement, Bytes lower_bound);

// What a runner makes of a request. `ready` is set last, with release order; everything else is read after
// it.
struct Candidate {
  std::atomic<bool> ready{false};
  std::atomic<bool> cancel{false};
  absl::Status status;
  ServingPlan plan;
  std::unique_ptr<Matcher> matcher;  // on `plan`, not yet in step
};

// planner::Solve, or what stands in front of it.
using Solver =
    std::function<absl::StatusOr<planner::Solution>(const planner::Problem&, const planner::Budget&)>;

// What a plan may take: `seconds`, or far more work than goes into them, for the job's clock may stand still.
planner::Budget BudgetOf(double seconds);

// Solves the request, checks the placement with the independent validator, and fills the candidate. Takes time
// in proportion to the request's blocks, up to `most_seconds` for each problem that is solved for it: mostly one (laying.h).
void Plan(const PlanRequest& request, double most_seconds, Candidate& candidate,
          const Solver& solve = planner::Solve);

// Where planning runs.
class PlanRunner {
 public:
  virtual ~PlanRunner() = default;
  virtual void Run(std::function<void()> job) = 0;
};

// In the caller, at once: for tests, where the outcome must not depend on timing.
class InlineRunner : public PlanRunner {
 public:
  void Run(std::function<void()> job) override { job(); }
};

}  // namespace reprise::replay
