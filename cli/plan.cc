// reprise plan: where every block of an input should lie.
#include "cli/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/shell.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/json_text.h"
#include "cli/options.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "planner/bound.h"
#include "planner/crossings.h"
#include "planner/keep.h"
#include "planner/portfolio.h"
#include "planner/validator.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

// A solve that took less was not ended by its time, on which the clocks of the command and of the solvers
// differ a little: it had nothing more to try.
constexpr double kMostOfTheTime = 0.9;

// "shared", "apart", or what a crossing costs; the command line has been checked.
void SetReuse(const std::string& streams, planner::Problem& problem) {
  if (streams == "shared") return;
  problem.reuse = streams == "apart" ? planner::Reuse::kForbidden : planner::Reuse::kPriced;
  if (problem.reuse == planner::Reuse::kPriced) problem.crossing_price = *ParseSize(streams);
}

// Sets a flag once the time is over. The solvers take a budget as advice as long as they have no placement;
// the user's limit holds whatever they have. Where there can be no thread it is never set, and their clocks are all.
class Deadline {
 public:
  explicit Deadline(double seconds) {
    const auto wait = [this, seconds] {
      std::unique_lock lock(mutex_);
      const std::chrono::duration<double> time(seconds);
      if (!ended_.wait_for(lock, time, [this] { return end_; })) over_ = true;
    };
    try {
      thread_ = std::thread(wait);
    } catch (const std::system_error&) {  // a limit on processes, or on addresses
    }
  }
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  const std::atomic<bool>* over() const { return &over_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

std::string SolverList() { return fmt::format("{}", fmt::join(planner::SolverNames(), ", ")); }

std::string SolutionJson(const planner::Problem& problem, const planner::Solution& solution) {
  const std::optional<double> kept = planner::ShareKept(problem, solution.placement);
  const Json json = {{"buffers", problem.buffers.size()},
                     {"lower_bound", solution.lower_bound.count()},
                     {"slab", solution.placement.slab.count()},
                     {"gap", planner::Gap(solution.placement.slab, solution.lower_bound)},
                     {"seconds", solution.seconds},
                     {"proven_optimal", solution.proven_optimal},
                     {"kept", kept ? Json(*kept) : Json()},
                     {"crossings", planner::CountCrossings(problem, solution.placement)},
                     {"solver", solution.solver}};
  return JsonText(json);
}

std::string SolutionText(const planner::Problem& problem, const planner::Solution& solution) {
  std::string text = fmt::format(
      "buffers      {:>12}\nlower bound  {:>12}\nslab         {:>12}  gap {}{}\nsolver       {:>12}  {}\n",
      problem.buffers.size(), FormatSize(solution.lower_bound), FormatSize(solution.placement.slab),
      FormatShare(planner::Gap(solution.placement.slab, solution.lower_bound)),
      solution.proven_optimal ? ", proven optimal" : "", solution.solver, FormatDuration(solution.seconds));
  if (problem.reuse == planner::Reuse::kPriced) {
    text += fmt::format("crossings    {:>12}  of memory from one stream to another, priced at {} each\n",
                        solution.crossings, FormatSize(problem.crossing_price));
  }
  if (const std::optional<double> kept = planner::ShareKept(problem, solution.placement))
    text += fmt::format("kept         {:>12}  of the buffers that the earlier plan has placed\n",
                        FormatShare(*kept));
  return text;
}

int PlanOneInput(const PlanOptions& options) {
  if (options.json && options.output == "-") {
    return Fail("--json and -o - are both for standard output; give the plan a file", kUsage);
  }
  const absl::StatusOr<LoadedInput> input = LoadAllocations(options.inputs[0]);
  if (!input.ok()) return Fail(input.status(), kBadInput);
  absl::StatusOr<planner::Problem> problem = ProblemToPlan(*input, options);
  if (!problem.ok()) return Fail(problem.status(), kBadInput);
  if (!options.keep.empty()) {
    const absl::StatusOr<planner::Plan> earlier = planner::ReadPlan(options.keep);
    if (!earlier.ok()) return Fail(earlier.status(), kBadInput);
    planner::AdoptPrevious(earlier->sizes, earlier->offsets, *problem);
    if (!planner::HasPrevious(*problem)) {
      Say(fmt::format("{}: none of its buffers is found again in {}, so there is nothing to keep",
                      options.keep, input->name));
    }
  }
  const absl::StatusOr<planner::Solution> solution = SolveAsTold(*problem, options);
  if (!solution.ok()) {
    const Failure failure = NotSolved(*input, options, solution.status());
    return Fail(failure.message, failure.status);
  }

  const bool fits = !options.capacity || solution->placement.slab <= *options.capacity;
  if (!fits) {
    Say(DoesNotFit(options, *solution));
  } else if (!options.output.empty()) {
    const absl::Status written =
        WriteOutput(options.output, planner::FormatPlan(PlanOf(*input, *problem, *solution)), options.inputs);
    if (!written.ok()) {
      return Fail(written, kUsage);
    }
  }
  int exit_status = fits ? kFine : kDoesNotFit;
  if (options.output != "-") {
    exit_status = Finish(options.json ? SolutionJson(*problem, *solution) : SolutionText(*problem, *solution),
                         exit_status);
  }
  if (options.json || !fits || options.output == "-") return exit_status;
  if (options.output.empty()) {
    SayNextOf("plan", options.inputs[0], " -o FILE.plan.json");
  } else {
    SayNextOf("check", options.inputs[0], " " + QuotedFile(options.output));
  }
  return exit_status;
}

}  // namespace

absl::StatusOr<planner::Problem> ProblemToPlan(const LoadedInput& input, const PlanOptions& options) {
  absl::StatusOr<planner::Problem> problem = ProblemOf(input);
  if (!problem.ok()) return problem;
  problem->capacity = options.capacity;
  SetReuse(options.streams, *problem);
  return problem;
}

absl::StatusOr<planner::Solution> SolveAsTold(const planner::Problem& problem, const PlanOptions& options) {
  const Deadline deadline(options.seconds);
  planner::Budget budget;
  budget.seconds = options.seconds;
  budget.cancel = deadline.over();
  budget.threads = planner::kMostThreads;  // as many everywhere: the answer depends on it
  absl::StatusOr<planner::Solution> solution = options.solver == "auto"
                                                   ? planner::Solve(problem, budget)
                                                   : planner::SolveWith(options.solver, problem, budget);
  if (!solution.ok()) return solution;
  // Whoever uses the plan trusts it.
  if (absl::Status status = planner::CheckPlacement(problem, solution->placement); !status.ok())
    return absl::InternalError(
        absl::StrCat("a placement that cannot be, which is a bug: ", status.message()));
  return solution;
}

Failure NotSolved(const LoadedInput& input, const PlanOptions& options, const absl::Status& error) {
  if (absl::IsDeadlineExceeded(error)) {
    return {fmt::format("{}: no placement within {}; give it more with --time-limit", input.name,
                        FormatDuration(options.seconds)),
            kOutOfTime};
  }
  // The rest is a solver that cannot do this, which more time would not change.
  const std::string_view instead = absl::IsUnimplemented(error) ? "; take --solver auto" : "";
  return {fmt::format("{}: {}{}", input.name, MessageOf(error), instead),
          absl::IsInvalidArgument(error) ? kBadInput : kUsage};
}

std::string DoesNotFit(const PlanOptions& options, const planner::Solution& solution) {
  const Bytes capacity = *options.capacity;
  if (solution.lower_bound > capacity) {
    return fmt::format("does not fit: {} bytes are needed at least, the capacity is {}",
                       solution.lower_bound.count(), capacity.count());
  }
  const bool in_time = solution.seconds < kMostOfTheTime * options.seconds;
  std::string_view what_may_help = "a longer --time-limit may find one";
  if (in_time && options.streams == "apart")
    what_may_help = "the streams apart were laid on top of each other in one order only";
  if (in_time && options.solver != "auto")
    what_may_help = "this solver has nothing more to try, --solver auto may find one";
  return fmt::format("no placement within {} bytes found, the best takes {}; {}", capacity.count(),
                     solution.placement.slab.count(), what_may_help);
}

planner::Plan PlanOf(const LoadedInput& input, const planner::Problem& problem,
                     const planner::Solution& solution) {
  return planner::MakePlan(problem, solution, {"reprise " REPRISE_VERSION, input.name, input.hash, UtcNow()});
}

void AddPlan(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("plan", "Work out where every block should lie");
  const auto options = std::make_shared<PlanOptions>();
  command
      ->add_option(
          "INPUT", options->inputs,
          "Trace, event CSV, lifetime CSV or snapshot; - for standard input. Several: each is planned for "
          "itself")
      ->required();
  command
      ->add_option(
          "-o", options->output,
          "Write the plan to this file; - for standard output. Of several inputs a folder, of one if it is "
          "there: a plan that is in it for an input is kept")
      ->type_name("PLAN");
  AddSizeOption(*command, "--capacity", options->capacity,
                "Stop at the first placement that fits; status 4 if none is found");
  AddDurationOption(*command, "--time-limit", options->seconds, "The most time to search, 10s by default");
  command->add_option("--solver", options->solver, fmt::format("auto or one of {}", SolverList()))
      ->check(
          [](const std::string& name) {
            const std::vector<std::string_view> names = planner::SolverNames();
            const bool known = name == "auto" || std::find(names.begin(), names.end(), name) != names.end();
            return known ? std::string()
                         : fmt::format("there is no solver \"{}\"; there are auto, {}", name, SolverList());
          },
          "")
      ->type_name("NAME");
  command
      ->add_option("--streams", options->streams,
                   "Blocks of different streams are shared, apart, or priced: a SIZE of slab for each time "
                   "that memory "
                   "goes from one to another; shared by default")
      ->check(
          [](const std::string& text) {
            return text == "shared" || text == "apart" || ParseSize(text).has_value()
                       ? std::string()
                       : fmt::format("{} is neither shared nor apart nor a size such as 64KiB", text);
          },
          "")
      ->type_name("WHICH");
  command
      ->add_option(
          "--keep", options->keep,
          "Leave blocks where this earlier plan of a similar input has them, for up to 1 % more slab")
      ->type_name("PLAN");
  command->add_flag(
      "--array", options->array,
      "Of the inputs those that are this task's part, where a Slurm array runs the same command");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "All blocks of the input are placed, over its whole length.\n\nExample:\n  reprise plan trace.reprise "
      "-o "
      "job.plan.json --capacity 16GiB");
  command->callback([options, &exit_status] {
    std::error_code error;
    const bool many =
        options->inputs.size() > 1 || options->array || std::filesystem::is_directory(options->output, error);
    exit_status = many ? PlanMany(*options) : PlanOneInput(*options);
  });
}

}  // namespace reprise::cli
