// Where a request's blocks come to lie: with a lag between streams (stream_lag.h), and around what is live, or above it.
//
// What stays of a job's start lies all over the addresses. Of large blocks that find no hole between two of it, a plan around it is far
// higher than what it has live, and memory would have to move for it in every round. Addresses are free: then the plan lies in a range
// of its own, and what stays keeps the granules that it lies in.
#pragma once

#include "absl/status/statusor.h"
#include "planner/types.h"
#include "replay/planning.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// Solves the request and checks the placement with the independent validator. An error where there is none, it is far above what it
// needs room for, or the budget was cancelled.
absl::StatusOr<ServingPlan> Lay(const PlanRequest& request, const planner::Budget& budget,
                                const Solver& solve);

}  // namespace reprise::replay
