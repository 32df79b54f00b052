#include "planner/portfolio.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>
#include <optional>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "planner/best_fit_solver.h"
#include "planner/bound.h"
#include "planner/clique.h"
#include "planner/divide.h"
#include "planner/eject.h"
#include "planner/exact.h"
#include "planner/exact_solver.h"
#include "planner/first_fit.h"
#include "planner/hybrid.h"
#include "planner/improve.h"
#include "planner/keep.h"
#include "planner/lanes.h"
#include "planner/orders.h"
#include "planner/problem.h"
#include "planner/ring_bound.h"
#include "planner/rounded.h"
#include "planner/search.h"
#include "planner/solver.h"
#include "planner/stopwatch.h"
#include "planner/team.h"
#include "planner/together.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

// A solver that is done after one turn.
template <auto run>
Turn Once(Search& search, std::string_view name) {
  return [&search, name] {
    run(search, name);
    return false;
  };
}

void Place(const std::vector<int32_t>& order, Search& search, std::string_view name) {
  FirstFit first_fit(search.instance(), search.memory());
  PlaceBelowBest(first_fit, order, search, name);
}

template <Order order>
void FirstFitBy(Search& search, std::string_view name) {
  Place(SortedBy(order, search.instance()), search, name);
}

// Size classes of half an octave, and octaves of the lifetime within them.
void FirstFitByClass(Search& search, std::string_view name) {
  Place(SortedBy(Classes{.per_octave = 2, .phase = 0.5, .by_lifetime = true}, search.instance()), search,
        name);
}

// For a stretch of a large problem.
constexpr Solver kOfStretches[] = {
    {"first-fit-class", Once<FirstFitByClass>},
    {"best-fit", Once<PlaceByBestFit>},
};

Turn BeginDivideByTime(Search& search, std::string_view name) {
  return BeginDivide(search, name, kOfStretches);
}

// The first answer should come soon and be sound on every kind of instance: "divide" is first-fit by classes
// unless the problem is large; where much is in use all the time "best-fit" is quicker. The next ones begin
// with something that costs as little, and each is the best on some family of instances. Then those that go
// on for as long as they are let; for small instances that is mostly the exact search. On cycles one thread
// is mostly ejection's, and the other one best-fit's, with chains and without.
constexpr Solver kSolvers[] = {
    {"divide", BeginDivideByTime, {4, 4, 0}, Opens::kNever},
    {"ring-bound", BeginRingBound, {0, 0, 0}, Opens::kNever, /*places=*/false, /*on_cycles=*/{1, 0, 2}},
    {"clique", BeginClique, {0, 0, 0}, Opens::kNever, /*places=*/false, /*on_cycles=*/{1, 0, 2}},
    {"best-fit", BeginBestFit, {2, 2, 2}, Opens::kAlways, /*places=*/true, /*on_cycles=*/{32, 4, 16}},
    {"first-fit-rounded", BeginRounded, {1, 0, 1}, Opens::kAlways, /*places=*/false},
    {"together-long",
     Once<PlaceLongTogether>,
     {1, 0, 1},
     Opens::kOnce,
     /*places=*/false,
     /*on_cycles=*/{0, 0, 0}},
    {"best-fit-large",
     BeginLargeByBestFit,
     {2, 2, 2},
     Opens::kAlways,
     /*places=*/false,
     /*on_cycles=*/{0, 0, 0}},
    {"chains", BeginChains, {0, 0, 0}, Opens::kNever, /*places=*/true, /*on_cycles=*/{16, 0, 32}},
    {"first-fit-crowd-size", Once<FirstFitBy<Order::kCrowdSize>>, {1, 0, 1}},
    {"hybrid", BeginHybrid, {4, 4, 1}, Opens::kOnLines},
    {"eject", BeginEject, {1, 2, 2}, Opens::kNever, /*places=*/true, /*on_cycles=*/{32, 32, 16}},
    {"exact", BeginExact, {16, 8, 8}, Opens::kNever},
    {"improve", BeginImprove, {1, 1, 0}, Opens::kNever},
};

// In steps: for how many more who divides goes on before the others begin; what a thread works in the first round, and
// twice as much in each that follows. Little, so that small instances are not kept waiting for what cannot help them.
constexpr int64_t kFirstGrant = 400'000;

// In steps: what the first turn of one that is not cheap takes at most. The hybrid's round without noise was seen to take 4 to
// 19 million on lines of some 20,000 buffers, and others might not come to more than a first try.
constexpr int64_t kMostToOpen = 5'000'000;

// Of the first answer's steps: for how many more who divides goes on, unless that was a quick one, of at most so many steps.
constexpr int64_t kPatience = 8;
constexpr int64_t kQuick = 2'000'000;

// In buffers: a cycle on which all threads open at once. Of a larger one a pass of best-fit takes most of the time that a
// first answer may take, and longer beside another one.
constexpr int32_t kMostToOpenTogether = 15'000;

// Of how many of its buffers at a time a line consists at least, unless it is crowded; and how many that are to be laid
// it has at a time at most. From some more on first-fit gives up holes, being as many as it may look at.
constexpr int kGenerations = 8;
constexpr int kMostAtATime = 4096;

// In first answers: the time that must be left for a member to begin. What it does on a large problem before
// the first step that it can be stopped at takes about as long as that answer, or a few times as long.
constexpr double kLastBegin = 1;
constexpr double kLastBeginOfDear = 4;

// Above every placement, and low enough for solvers to add to it. A capacity beyond it asks for no more.
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max() / 4;

// Of the time: what the search leaves for keeping previous offsets, where there are any.
constexpr double kShareOfKeeping = 0.1;
// A small problem is kept to its end however short the time, unless a cancel ends it: it takes milliseconds.
constexpr double kMostKeeping = 1;  // seconds beyond the search, if they are beyond the time

// A solver on one thread.
struct Member {
  const Solver* solver;
  int share;
  Turn turn{};
  bool active = true;

  bool IsCheap() const { return solver->opens == Opens::kAlways || solver->opens == Opens::kOnce; }

  // The steps of the first turn.
  int64_t ToOpen(bool cyclic, int64_t grant) const {
    if (IsCheap()) return Search::kNothing;
    return solver->opens == Opens::kOnLines && !cyclic ? std::max(grant, kMostToOpen) : grant;
  }

  void TakeTurn(Search& search, int64_t grant) {
    const bool first = !turn;
    search.Grant(first ? ToOpen(search.instance().cyclic, grant) : grant);
    if (first) turn = solver->begin(search, solver->name);
    active = turn();
  }
};

// Whether much is in use all the time: on all cycles, and on lines whose buffers are seldom replaced or very many.
// Such a problem is not improved by parts, and first-fit finds a great deal in each buffer's way.
bool IsCrowded(const Instance& instance) {
  double in_use = 0, to_be_laid = 0;  // summed up over the slots
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    in_use += static_cast<double>(instance.length(i));
    if (instance.is_free(i)) to_be_laid += static_cast<double>(instance.length(i));
  }
  return instance.cyclic ||
         kGenerations * in_use > static_cast<double>(instance.buffers()) * instance.slots ||
         to_be_laid > static_cast<double>(kMostAtATime) * instance.slots;
}

// Those that are switched on and have a share of the search's thread; on the first, and on all of a cycle, one that places
// leads. Where it is crowded that is one that ends by itself, who divides next to it.
std::vector<Member> MembersFor(const Search& search, std::span<const Solver> solvers, bool crowded) {
  std::vector<Member> members;
  for (const Solver& solver : solvers) {
    const Shares& shares = search.instance().cyclic ? solver.on_cycles : solver.shares;
    const int share = search.workers() == 1  ? shares.alone
                      : search.worker() == 0 ? shares.first
                                             : shares.second;
    if (search.on(solver.name) && share > 0) members.push_back({&solver, share});
  }
  if (search.worker() > 0 && !search.instance().cyclic) return members;
  // The first answer comes from whoever is the first that places; were there nobody, who else should give it?
  const auto places = [](const Member& m) { return m.solver->places; };
  auto opener = std::ranges::find_if(members, places);
  if (crowded) {
    const auto cheap = std::ranges::find_if(
        members, [&](const Member& m) { return places(m) && m.solver->opens == Opens::kAlways; });
    if (cheap != members.end()) opener = cheap;
  }
  if (opener == members.end()) {
    if (search.worker() > 0) return members;
    members.insert(members.begin(), {&solvers.front(), 1});
  } else {
    std::rotate(members.begin(), opener, opener + 1);
  }
  return members;
}

// What a search may take, and what its first answer has taken, in seconds.
struct Times {
  double all;
  double first_answer;

  bool CanBegin(const Member& member, double now) const {
    return now <= all - first_answer * (member.IsCheap() ? kLastBegin : kLastBeginOfDear);
  }
};

// Each has a turn, `grant` steps in total; those that have nothing more to offer leave, and those for whose
// beginning it is too late.
void TakeTurns(std::vector<Member>& members, Search& search, int64_t grant, const Times& times) {
  int64_t shares = 0;
  for (const Member& member : members) shares += member.share;
  for (Member& member : members) {
    // The search that the rounds end by may not have looked at the clock since: nobody is left here for it.
    if (search.Over()) return members.clear();
    if (!member.turn && !times.CanBegin(member, search.seconds())) {
      member.active = false;
      continue;
    }
    member.TakeTurn(search, grant * member.share / std::max<int64_t>(1, shares));
  }
  std::erase_if(members, [](const Member& member) { return !member.active; });
}

// Those that have one turn have it, if it is not too late.
void OpenOnce(std::vector<Member>& members, Search& search, const Times& times) {
  std::erase_if(members, [&](Member& member) {
    if (member.solver->opens != Opens::kOnce) return false;
    if (times.CanBegin(member, search.seconds())) member.TakeTurn(search, 0);
    return true;
  });
}

// Who is first has a turn of `grant` steps.
void Lead(std::vector<Member>& members, Search& search, int64_t grant) {
  if (members.empty()) return;
  members.front().TakeTurn(search, grant);
  if (!members.front().active) members.erase(members.begin());
}

// Until the search is over, which it is after `seconds` at the latest, or nobody has more to offer. `team` is
// there once several work.
void Work(Search& first, double seconds, std::span<const Solver> solvers, std::optional<Team>& team) {
  if (first.Over()) return;
  const bool crowded = IsCrowded(first.instance());
  std::vector<std::vector<Member>> members(1, MembersFor(first, solvers, crowded));
  const auto gather = [&] {
    team.emplace(first);
    for (int worker = 1; worker < team->size(); ++worker)
      members.push_back(MembersFor(team->search(worker), solvers, crowded));
  };
  // One answer is there before anything else begins: soon, and a large problem does not take twice the memory.
  if (first.instance().cyclic && first.instance().buffers() <= kMostToOpenTogether) {
    gather();
    team->Round([&](int worker) { Lead(members[worker], team->search(worker), kFirstGrant); });
  } else {
    Lead(members[0], first, 0);
    if (first.Over()) return;
    gather();
  }
  const Times times = {seconds, first.best_slab() == Search::kNothing ? 0 : first.seconds()};
  const bool divides = !crowded && !members[0].empty() && members[0].front().solver == &solvers.front();
  const int64_t answer = first.steps();
  // Then whoever has one turn: on some families little else comes near. Where the answer took long, the others would take long
  // too, and who divides goes on for longer: a large problem is better improved part by part, unless it is crowded.
  const auto go_on = [&](int worker) {
    Search& search = team->search(worker);
    OpenOnce(members[worker], search, times);
    if (worker > 0 || !divides || search.Over()) return;
    Lead(members[0], search, answer > kQuick ? kPatience * answer : kFirstGrant);
  };
  const auto left = [&] {
    for (int worker = 0; worker < team->size(); ++worker) {
      if (!members[worker].empty() && !team->search(worker).Over()) return true;
    }
    return false;
  };
  if (left()) team->Round(go_on);
  for (int64_t grant = kFirstGrant; left(); grant *= 2) {
    team->Round([&](int worker) { TakeTurns(members[worker], team->search(worker), grant, times); });
  }
}

// The exact search alone has no answer to what is too large for it, however long it has.
absl::Status CanTry(std::span<const Solver> solvers, const Instance& instance) {
  if (solvers.size() > 1 || solvers.front().begin != BeginExact || ExactSearch::CanLookAt(instance))
    return absl::OkStatus();
  return absl::UnimplementedError(
      fmt::format("{} takes {} buffers at most, fewer where they have gaps; there are {}",
                  solvers.front().name, ExactSearch::kMostBuffers, instance.buffers()));
}

absl::StatusOr<Solution> Run(const Problem& problem, const Budget& budget, std::span<const Solver> solvers) {
  const Stopwatch stopwatch;
  if (absl::Status status = Validate(problem); !status.ok()) return status;
  const Instance instance = Compress(problem, budget.rules.on(kTurnCycles));
  const int64_t bound = LowerBound(instance).count();
  if (const absl::Status status = CanTry(solvers, instance); !status.ok()) return status;
  const bool decides = problem.capacity && problem.capacity->count() >= bound;
  Budget left = budget;
  left.seconds -= stopwatch.seconds();
  if (HasPrevious(problem)) left.seconds *= 1 - kShareOfKeeping;
  const int64_t target = decides ? std::min(problem.capacity->count(), kHighest) : bound;
  Search first(instance, target, left, decides);
  std::optional<Team> team;
  try {
    Work(first, left.seconds, solvers, team);
  } catch (const std::bad_alloc&) {  // what was found before is as good as ever
    if (first.best_slab() == Search::kNothing) throw;
  }
  const Search& search = team ? team->best() : first;
  if (search.cancelled() && search.best_slab() == Search::kNothing)
    return absl::DeadlineExceededError("cancelled before a first placement was found");
  if (search.best_slab() == Search::kNothing)
    return absl::UnimplementedError(fmt::format("{} cannot handle this problem", solvers.front().name));
  Solution solution;
  for (int64_t offset : search.best()) solution.placement.offsets.emplace_back(offset);
  solution.placement.slab = Bytes(search.best_slab());
  solution.lower_bound = Bytes(std::max(bound, search.refuted() + 1));
  solution.proven_optimal = solution.placement.slab == solution.lower_bound;
  solution.solver = search.best_solver();
  solution.steps = search.steps();
  const double until = std::max(budget.seconds, stopwatch.seconds() + kMostKeeping);
  const auto stop = [&] { return search.cancelled() || stopwatch.seconds() >= until; };
  KeepPrevious(problem, stop, solution);
  solution.seconds = stopwatch.seconds();
  assert(CheckPlacement(problem, solution.placement).ok());
  return solution;
}

absl::StatusOr<Solution> SolveByReuse(const Problem& problem, const Budget& budget) {
  const auto solve = [](const Problem& part, const Budget& share) { return Run(part, share, kSolvers); };
  switch (problem.reuse) {
    case Reuse::kAllowed:
      return solve(problem, budget);
    case Reuse::kForbidden:
      return SolveApart(problem, budget, solve);
    case Reuse::kPriced:
      return SolvePriced(problem, budget, solve);
  }
  return absl::InternalError("an unknown kind of reuse");
}

absl::Status NoMemory() { return absl::ResourceExhaustedError("there is not enough memory to plan this"); }

}  // namespace

absl::StatusOr<Solution> Solve(const Problem& problem, const Budget& budget) {
  try {
    return SolveByReuse(problem, budget);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

absl::StatusOr<Solution> SolveWith(std::string_view solver, const Problem& problem, const Budget& budget) {
  const auto* found = std::find_if(std::begin(kSolvers), std::end(kSolvers), [&](const Solver& member) {
    return member.places && member.name == solver;
  });
  if (found == std::end(kSolvers)) {
    return absl::NotFoundError(
        fmt::format("there is no solver \"{}\"; there are {}", solver, fmt::join(SolverNames(), ", ")));
  }
  if (problem.reuse != Reuse::kAllowed)
    return absl::UnimplementedError("one solver alone knows nothing of lanes");
  try {
    return Run(problem, budget, {found, 1});
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

std::vector<std::string_view> SolverNames() {
  std::vector<std::string_view> names;
  for (const Solver& solver : kSolvers) {
    if (solver.places) names.push_back(solver.name);
  }
  return names;
}

std::vector<std::string_view> RuleNames() {
  std::vector<std::string_view> names;
  for (const Solver& solver : kSolvers) names.push_back(solver.name);
  const std::vector<std::string_view> within = {
      kTurnCycles,         kBestFitPrices,          kBestFitFeedback,       kEjectLargeFirst,
      "hybrid-look-ahead", "hybrid-several-shares", "hybrid-several-ranks", "hybrid-crowded",
      "hybrid-noise",      "hybrid-promote",        "exact-not-first",      "exact-components",
      "exact-trouble",     "exact-rivals",          "exact-perturbed",      "exact-strategies",
      "exact-coarse"};
  names.insert(names.end(), within.begin(), within.end());
  return names;
}

}  // namespace reprise::planner
