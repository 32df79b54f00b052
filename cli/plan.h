// What `reprise plan` does with one input, for those who have many.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "cli/input.h"
#include "planner/plan_file.h"
#include "planner/types.h"

namespace reprise::cli {

struct PlanOptions {
  std::vector<std::string> inputs;
  std::string output;  // a file, of several inputs a folder; empty: none
  std::optional<Bytes> capacity;
  double seconds = 10;
  std::string solver = "auto";
  std::string streams = "shared";
  std::string keep;  // an earlier plan; empty: none
  bool array = false;
  bool json = false;
};

// InvalidArgument: ProblemOf's.
absl::StatusOr<planner::Problem> ProblemToPlan(const LoadedInput& input, const PlanOptions& options);

absl::StatusOr<planner::Solution> SolveAsTold(const planner::Problem& problem, const PlanOptions& options);

// Why there is no plan.
struct Failure {
  std::string message;
  int status;  // to exit with
};
Failure NotSolved(const LoadedInput& input, const PlanOptions& options, const absl::Status& error);

// Why a solution that is above the capacity is the best there is.
std::string DoesNotFit(const PlanOptions& options, const planner::Solution& solution);

planner::Plan PlanOf(const LoadedInput& input, const planner::Problem& problem,
                     const planner::Solution& solution);

// Several inputs, or a task's part of them: a plan of each in a folder, and one table.
int PlanMany(const PlanOptions& options);

}  // namespace reprise::cli
