// reprise plan with many inputs, or into a folder: a plan of each there. What is there already is not done again, so
// that the tasks of an array and whoever gathers their plans run the same command.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "base/printable.h"
#include "base/shell.h"
#include "cli/console.h"
#include "cli/json_text.h"
#include "cli/plan.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "planner/bound.h"
#include "planner/crossings.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct PlanRow {
  std::string input;
  std::string plan;  // its file; empty: none was wanted
  size_t buffers = 0;
  Bytes lower_bound;
  Bytes slab;
  bool proven_optimal = false;
  int64_t crossings = 0;
  std::string solver;  // empty: there was a plan for it
  double seconds = 0;
  int status = kFine;  // to exit with
  std::string error;   // empty: none

  bool is_placed() const { return status == kFine || status == kDoesNotFit; }
};

std::optional<int64_t> NumberFromEnvironment(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? std::nullopt : ParseNumber<int64_t>(text);
}

// Which of how many tasks of an array this one is, from 0. nullopt: none, or one of an array whose numbers do
// not tell.
std::optional<std::pair<int64_t, int64_t>> TaskOfArray() {
  const auto id = NumberFromEnvironment("SLURM_ARRAY_TASK_ID"),
             count = NumberFromEnvironment("SLURM_ARRAY_TASK_COUNT"),
             first = NumberFromEnvironment("SLURM_ARRAY_TASK_MIN"),
             last = NumberFromEnvironment("SLURM_ARRAY_TASK_MAX"),
             step = NumberFromEnvironment("SLURM_ARRAY_TASK_STEP");
  if (!id || !count || !first || !last) return std::nullopt;
  const int64_t by = std::max<int64_t>(1, step.value_or(1));
  if ((*last - *first) / by + 1 != *count || *id < *first || *id > *last) return std::nullopt;
  return std::pair((*id - *first) / by, *count);
}

// The plans' files: named by what is left of the inputs' paths behind the folder that they have in common.
std::vector<std::string> PlanPaths(const std::vector<std::string>& inputs, const std::string& folder) {
  std::vector<fs::path> whole;
  whole.reserve(inputs.size());
  std::error_code error;
  for (const std::string& input : inputs) whole.push_back(fs::absolute(input, error).lexically_normal());
  fs::path common = whole[0].parent_path();
  for (const fs::path& path : whole) {
    while (common != common.root_path() &&
           std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first != common.end()) {
      common = common.parent_path();
    }
  }
  std::vector<std::string> names;
  names.reserve(inputs.size());
  for (const fs::path& path : whole) {
    std::string name = path.lexically_relative(common).replace_extension(".plan.json").string();
    std::ranges::replace(name, '/', '-');
    names.push_back(fmt::format("{}/{}", folder, name));
  }
  return names;
}

// The plan that is there, if it is for this problem and good enough.
std::optional<planner::Plan> PlanThere(const std::string& path, const planner::Problem& problem) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return std::nullopt;
  absl::StatusOr<planner::Plan> plan = planner::ReadPlan(path);
  if (!plan.ok() || !planner::CheckPlan(problem, *plan).ok()) return std::nullopt;
  if (problem.capacity && plan->slab > *problem.capacity) return std::nullopt;
  return *std::move(plan);
}

PlanRow Failed(const std::string& input_path, Failure failure) {
  Fail(failure.message, failure.status);
  return {.input = input_path, .status = failure.status, .error = std::move(failure.message)};
}

PlanRow PlanOne(const PlanOptions& options, const std::string& input_path, const std::string& plan_path) {
  const auto failed = [&](const absl::Status& error, int status) {
    return Failed(input_path, {MessageOf(error), status});
  };
  const absl::StatusOr<LoadedInput> input = LoadAllocations(input_path);
  if (!input.ok()) return failed(input.status(), kBadInput);
  const absl::StatusOr<planner::Problem> problem = ProblemToPlan(*input, options);
  if (!problem.ok()) return failed(problem.status(), kBadInput);
  PlanRow row = {.input = input_path, .plan = plan_path, .buffers = problem->buffers.size()};
  if (const std::optional<planner::Plan> there = PlanThere(plan_path, *problem)) {
    // Not the file's, which may be of the same buffers under another --streams.
    row.lower_bound = planner::LowerBound(*problem);
    row.slab = there->slab;
    row.crossings = planner::CountCrossings(*problem, {there->offsets, there->slab});
    const bool crossings_count = problem->reuse == planner::Reuse::kPriced;
    row.proven_optimal = row.slab == row.lower_bound && (!crossings_count || row.crossings == 0);
    return row;
  }
  const absl::StatusOr<planner::Solution> solution = SolveAsTold(*problem, options);
  if (!solution.ok()) return Failed(input_path, NotSolved(*input, options, solution.status()));
  row.lower_bound = solution->lower_bound;
  row.slab = solution->placement.slab;
  row.proven_optimal = solution->proven_optimal;
  row.crossings = planner::CountCrossings(*problem, solution->placement);
  row.solver = solution->solver;
  row.seconds = solution->seconds;
  if (options.capacity && row.slab > *options.capacity) {
    row.plan.clear();
    row.error = DoesNotFit(options, *solution);
    row.status = kDoesNotFit;
    Say(fmt::format("{}: {}", input_path, row.error));
  } else if (!plan_path.empty()) {
    const absl::Status written =
        WriteOutput(plan_path, planner::FormatPlan(PlanOf(*input, *problem, *solution)), options.inputs);
    if (!written.ok()) return failed(written, kUsage);
  }
  return row;
}

std::string TableText(const std::vector<PlanRow>& rows) {
  std::string text = fmt::format("{:>9} {:>12} {:>12} {:>8}  {:<14} {}\n", "buffers", "lower bound", "slab",
                                 "gap", "solver", "input");
  for (const PlanRow& row : rows) {
    if (!row.is_placed()) continue;
    text += fmt::format("{:>9} {:>12} {:>12} {:>8}  {:<14} {}\n", row.buffers, FormatSize(row.lower_bound),
                        FormatSize(row.slab), FormatShare(planner::Gap(row.slab, row.lower_bound)),
                        row.solver.empty() ? "was there" : row.solver, Printable(row.input));
  }
  return text;
}

std::string TableJson(const std::vector<PlanRow>& rows) {
  Json plans = Json::array();
  for (const PlanRow& row : rows) {
    Json& plan = plans.emplace_back(Json{{"input", row.input}, {"status", row.status}});
    if (!row.error.empty()) plan["error"] = row.error;
    if (!row.is_placed()) continue;
    plan.update({{"plan", row.plan},
                 {"buffers", row.buffers},
                 {"lower_bound", row.lower_bound.count()},
                 {"slab", row.slab.count()},
                 {"gap", planner::Gap(row.slab, row.lower_bound)},
                 {"proven_optimal", row.proven_optimal},
                 {"crossings", row.crossings},
                 {"was_there", row.solver.empty()},
                 {"solver", row.solver},
                 {"seconds", row.seconds}});
  }
  const Json json = {{"plans", std::move(plans)}};
  return JsonText(json);
}

}  // namespace

int PlanMany(const PlanOptions& options) {
  if (!options.keep.empty()) return Fail("--keep is for one input, with its plan in a file", kUsage);
  if (options.output == "-")
    return Fail("of several inputs the plans go to a folder, not to standard output", kUsage);
  if (std::ranges::find(options.inputs, "-") != options.inputs.end()) {
    return Fail("standard input cannot be one of several inputs, nor has it a name for a plan in a folder",
                kUsage);
  }
  int64_t task = 0, tasks = 1;
  if (options.array) {
    const auto here = TaskOfArray();
    if (!here) {
      return Fail("--array: this is no task of a Slurm array, or of one whose numbers are not evenly spaced",
                  kUsage);
    }
    std::tie(task, tasks) = *here;
  }
  std::vector<std::string> paths(options.inputs.size());
  if (!options.output.empty()) {
    std::error_code error;
    fs::create_directories(options.output, error);
    if (error)
      return Fail(fmt::format("cannot make the folder {}: {}", options.output, error.message()), kUsage);
    paths = PlanPaths(options.inputs, options.output);
    std::vector<std::string> sorted = paths;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      return Fail(fmt::format("two of the inputs would have their plans in {}; plan them apart", *twice),
                  kUsage);
    }
  }
  int status = kFine;
  std::vector<PlanRow> rows;
  for (size_t i = static_cast<size_t>(task); i < options.inputs.size(); i += static_cast<size_t>(tasks)) {
    rows.push_back(PlanOne(options, options.inputs[i], paths[i]));
    status = std::max(status, rows.back().status);
  }
  status = std::max(status, Finish(options.json ? TableJson(rows) : TableText(rows), status));
  const auto planned = std::ranges::find_if(rows, [](const PlanRow& row) { return !row.plan.empty(); });
  if (!options.json && planned != rows.end()) {
    SayNext(fmt::format("check {} {}", QuotedFile(planned->input), QuotedFile(planned->plan)));
  }
  return status;
}

}  // namespace reprise::cli
