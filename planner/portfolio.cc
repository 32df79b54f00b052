#include "planner/portfolio.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "planner/best_fit.h"
#include "planner/bound.h"
#include "planner/divide.h"
#include "planner/first_fit.h"
#include "planner/improve.h"
#include "planner/orders.h"
#include "planner/problem.h"
#include "planner/search.h"
#include "planner/solver.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

absl::Status Place(const std::vector<int32_t>& order, Search& search, std::string_view name) {
  std::vector<int64_t> offsets;
  const auto outcome = FirstFit(search.instance()).Place(order, Search::kNothing, search, offsets);
  if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, name, order);
  return absl::OkStatus();
}

template <Order order>
absl::Status FirstFitBy(Search& search, std::string_view name) {
  return Place(SortedBy(order, search.instance()), search, name);
}

// Size classes of half an octave, and octaves of the lifetime within them.
absl::Status FirstFitByClass(Search& search, std::string_view name) {
  return Place(SortedBy(Classes{.per_octave = 2, .phase = 0.5, .by_lifetime = true}, search.instance()),
               search, name);
}

// For a stretch of a large problem.
constexpr Solver kOfStretches[] = {
    {"first-fit-class", FirstFitByClass},
    {"best-fit", BestFit},
};

absl::Status DivideByTime(Search& search, std::string_view name) {
  return Divide(search, name, kOfStretches);
}

// The first answer should come soon and be sound on every kind of instance, so the two fastest lead; the
// first is first-fit by classes unless the problem is large.
constexpr Solver kSolvers[] = {
    {"divide", DivideByTime},
    {"best-fit", BestFit},
    {"first-fit-size", FirstFitBy<Order::kSize>},
    {"first-fit-crowd-size", FirstFitBy<Order::kCrowdSize>},
    {"first-fit-crowd-lifetime", FirstFitBy<Order::kCrowdLifetime>},
    {"first-fit-area", FirstFitBy<Order::kArea>},
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
