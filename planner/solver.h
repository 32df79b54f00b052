// What a member of the portfolio is.
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "planner/search.h"

namespace reprise::planner {

// A solver offers to `search` whatever it finds and returns when it has nothing more to offer or
// search.Stop(). Unimplemented, with nothing offered: it cannot handle a feature of the instance; the message
// says which.
struct Solver {
  std::string_view name;  // static; stands in plans and on the command line
  absl::Status (*run)(Search& search, std::string_view name);
};

// All members in the order in which the portfolio runs them. The first handles every instance and always
// completes, unless cancelled.
std::span<const Solver> Solvers();

}  // namespace reprise::planner
