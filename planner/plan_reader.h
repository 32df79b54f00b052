// From a plan's text back to the plan. The text may be anybody's.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "planner/plan_file.h"

namespace reprise::planner {

// The inverse of FormatPlan, strict: every field present once, of its type and in its range; fields it does
// not know are skipped. InvalidArgument names `name` and the byte or the field. Safe on hostile input.
absl::StatusOr<Plan> ParsePlan(std::string_view text, std::string_view name);

}  // namespace reprise::planner
