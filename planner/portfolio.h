// The planner's entry: all solvers behind one call.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/types.h"

namespace reprise::planner {

// The best placement found within `budget`. The members of the portfolio run in a fixed order; the search
// stops at the lower bound, at the problem's capacity, when the time is over, or on cancel. The first member
// always completes, so that a placement comes back whatever the time; the capacity is not a condition either:
// when it is not reached, the best placement comes back and the caller compares. Equal inputs and seeds give
// equal answers as long as time is not what ends the search. InvalidArgument: Validate's. DeadlineExceeded:
// cancelled before the first placement was found. ResourceExhausted: no memory for a first placement; where
// it runs out later, the best so far comes back. As many threads as the budget grants; memory linear in the
// number of buffers.
absl::StatusOr<Solution> Solve(const Problem& problem, const Budget& budget);

// The same with one member only. NotFound: no such solver, the message lists them. Unimplemented: the solver
// cannot handle a feature of this problem, the message says which.
absl::StatusOr<Solution> SolveWith(std::string_view solver, const Problem& problem, const Budget& budget);

// What SolveWith can be asked for, in the order in which Solve runs them.
std::vector<std::string_view> SolverNames();

// What Budget::rules can switch off: the solvers and the rules within them.
std::vector<std::string_view> RuleNames();

}  // namespace reprise::planner
