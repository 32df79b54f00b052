// A problem and a plan for it, for the tests of what becomes of plans in files.
#pragma once

#include "planner/plan_file.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {

inline const Problem kProblem{{Block(0, 2, 4), Block(1, 3, 3, 4), Pinned(0, 3, 8, 16)}};

inline Plan SomePlan() {
  Solution solution{.placement = At({4, 0, 16}, 8), .lower_bound = Bytes(7), .solver = "best-fit"};
  return MakePlan(kProblem, solution, {"reprise 0.1", "a \"b\".csv", "00ff", "2024-01-01T00:00:00Z"});
}

}  // namespace reprise::planner
