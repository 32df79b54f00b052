#pragma once
#include "absl/status/status.h"
#include "planner/search.h"
namespace reprise::planner {
absl::Status Improve(Search& search, std::string_view name);
}
