#include "replay/core/shared_solves.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/files.h"
#include "planner/plan_file.h"
#include "planner/plan_reader.h"
#include "planner/portfolio.h"
#include "replay/core/lease.h"

namespace reprise::replay {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at a file system that tells nobody of its changes: short at first, as most solves are.
constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{100};

constexpr int64_t kMostPlanBytes = int64_t{256} << 20;

std::string PlanPath(const std::string& name) { return name + ".solved.json"; }
std::string LeasePath(const std::string& name) { return name + ".lease"; }

std::optional<planner::Solution> Read(const std::string& path, const planner::Problem& problem) {
  if (access(path.c_str(), R_OK) != 0) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadRegularFile(path, kMostPlanBytes);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<planner::Plan> plan = planner::ParsePlan(*text, "the file");
  if (!plan.ok() || !planner::CheckPlan(problem, *plan).ok()) return std::nullopt;
  planner::Solution solution;
  solution.placement = {.offsets = std::move(plan->offsets), .slab = plan->slab};
  solution.lower_bound = plan->lower_bound;
  solution.proven_optimal = plan->proven_optimal;
  solution.solver = std::move(plan->solver);
  return solution;
}

bool IsSet(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(std::memory_order_relaxed); }

}  // namespace

SharedSolves::Turn SharedSolves::Await(const std::string& name, const planner::Problem& problem,
                                       const planner::Budget& budget,
                                       std::optional<planner::Solution>& solution) const {
  const Clock::time_point end = Clock::now() + patience_;
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    solution = Read(PlanPath(name), problem);
    if (solution) return Turn::kTaken;
    if (TakeLease(LeasePath(name), kLeaseSeconds)) {
      // Between the look and the lease whoever had it may have come to its end.
      solution = Read(PlanPath(name), problem);
      if (!solution) return Turn::kOurs;
      unlink(LeasePath(name).c_str());
      return Turn::kTaken;
    }
    if (IsSet(budget.cancel)) return Turn::kCancelled;
    if (Clock::now() >= end) return Turn::kNoLonger;
    std::this_thread::sleep_for(pause);
  }
}

absl::StatusOr<planner::Solution> SharedSolves::Solve(const planner::Problem& problem,
                                                      const planner::Budget& budget) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);  // where there is none, there is no lease to wait for
  const std::string name = fmt::format("{}/{:016x}", folder_, planner::Signature(problem));
  std::optional<planner::Solution> there;
  const Turn turn = Await(name, problem, budget, there);
  if (turn == Turn::kCancelled) return absl::CancelledError("planning was told to stop");
  if (turn == Turn::kTaken) {
    taken_.fetch_add(1, std::memory_order_relaxed);
    return *std::move(there);
  }
  absl::StatusOr<planner::Solution> solution = planner::Solve(problem, budget);
  // What was cut short is not for others. That it cannot be written is no fault of the solution's.
  if (solution.ok() && !IsSet(budget.cancel)) {
    solved_.fetch_add(1, std::memory_order_relaxed);
    const std::string text = planner::FormatPlan(planner::MakePlan(problem, *solution, {}));
    if (!ReplaceFile(PlanPath(name), text).ok()) lost_.fetch_add(1, std::memory_order_relaxed);
  }
  if (turn == Turn::kOurs) unlink(LeasePath(name).c_str());
  return solution;
}

}  // namespace reprise::replay
