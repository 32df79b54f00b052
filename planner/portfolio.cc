#include "planner/portfolio.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "planner/best_fit.h"
#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/hybrid.h"
#include "planner/improve.h"
#include "planner/orders.h"
#include "planner/problem.h"
#include "planner/search.h"
#include "planner/solver.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

template <Order order>
absl::Status FirstFitBy(Search& search, std::string_view name) {
  const std::vector<int32_t> sorted = SortedBy(order, search.instance());
  const int64_t limit = search.best_slab() == Search::kNothing ? Search::kNothing : search.best_slab() - 1;
  std::vector<int64_t> offsets;
  const auto outcome = FirstFit(search.instance()).Place(sorted, limit, search, offsets);
  if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, name, sorted);
  return absl::OkStatus();
}

// The first answer should come soon and be sound on every kind of instance. The next two cost as little, and
// each is the best of the three on a family of instances. Then what is best on nearly all of them; it is left
// early only where it has nothing more to offer.
constexpr Solver kSolvers[] = {
    {"first-fit-size-class", FirstFitBy<Order::kSizeClass>},
    {"best-fit", BestFit},
    {"first-fit-crowd-size", FirstFitBy<Order::kCrowdSize>},
    {"hybrid", Hybrid},
    {"improve", Improve},
};

// Runs `solvers` until the search ends. A solver that cannot handle the problem is passed over; its reason is
// the answer when no other one finds anything.
absl::StatusOr<Solution> Run(const Problem& problem, const Budget& budget, std::span<const Solver> solvers) {
  if (absl::Status status = Validate(problem); !status.ok()) return status;
  const Instance instance = Compress(problem);
  const Bytes bound = LowerBound(instance);
  Search search(instance, std::max(bound, problem.capacity.value_or(Bytes(0))).count(), budget);
  absl::Status reason = absl::DeadlineExceededError("cancelled before a first placement was found");
  for (const Solver& solver : solvers) {
    if (search.Stop()) break;
    if (absl::Status status = solver.run(search, solver.name); !status.ok()) reason = status;
  }
  if (search.best_slab() == Search::kNothing) return reason;
  Solution solution;
  for (int64_t offset : search.best()) solution.placement.offsets.emplace_back(offset);
  solution.placement.slab = Bytes(search.best_slab());
  solution.lower_bound = bound;
  solution.proven_optimal = solution.placement.slab == bound;
  solution.solver = search.best_solver();
  solution.seconds = search.seconds();
  assert(CheckPlacement(problem, solution.placement).ok());
  return solution;
}

}  // namespace

std::span<const Solver> Solvers() { return kSolvers; }

absl::StatusOr<Solution> Solve(const Problem& problem, const Budget& budget) {
  return Run(problem, budget, kSolvers);
}

absl::StatusOr<Solution> SolveWith(std::string_view solver, const Problem& problem, const Budget& budget) {
  const auto* found = std::find_if(std::begin(kSolvers), std::end(kSolvers),
                                   [&](const Solver& member) { return member.name == solver; });
  if (found == std::end(kSolvers)) {
    return absl::NotFoundError(
        fmt::format("there is no solver \"{}\"; there are {}", solver, fmt::join(SolverNames(), ", ")));
  }
  return Run(problem, budget, {found, 1});
}

std::vector<std::string_view> SolverNames() {
  std::vector<std::string_view> names;
  for (const Solver& solver : kSolvers) names.push_back(solver.name);
  return names;
}

}  // namespace reprise::planner
