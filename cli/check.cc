// reprise check: is this plan a correct answer to this input?
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/json_text.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "planner/bound.h"
#include "planner/plan_file.h"
#include "planner/validator.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckOptions {
  std::string input;
  std::string plan;
  bool json = false;
};

struct Finding {
  const LoadedInput& input;
  const planner::Problem& problem;
  const planner::Plan& plan;
  absl::Status verdict;
  std::optional<planner::Overlap> overlap;  // where that is the fault
  Bytes lower_bound;
};

std::string FindingJson(const Finding& finding) {
  Json json = {{"valid", finding.verdict.ok()},
               {"fault", nullptr},
               {"first_overlap", nullptr},
               {"buffers", finding.problem.buffers.size()},
               {"slab", finding.plan.slab.count()},
               {"lower_bound", finding.lower_bound.count()},
               {"gap", planner::Gap(finding.plan.slab, finding.lower_bound)},
               {"stated_lower_bound", finding.plan.lower_bound.count()},
               {"stated_gap", planner::Gap(finding.plan.slab, finding.plan.lower_bound)}};
  if (!finding.verdict.ok()) json["fault"] = MessageOf(finding.verdict);
  if (finding.overlap) {
    json["first_overlap"] = {{"first", finding.overlap->first},
                             {"second", finding.overlap->second},
                             {"tick", finding.overlap->tick.count()}};
    if (finding.input.is_lifetimes()) {
      json["first_overlap"]["first_id"] =
          NameOfBuffer(finding.input, static_cast<size_t>(finding.overlap->first));
      json["first_overlap"]["second_id"] =
          NameOfBuffer(finding.input, static_cast<size_t>(finding.overlap->second));
    }
  }
  return JsonText(json);
}

std::string FindingText(const Finding& finding) {
  if (finding.verdict.ok()) {
    std::string text =
        fmt::format("valid: {} buffers, slab {}, lower bound {}, gap {}\n", finding.problem.buffers.size(),
                    FormatSize(finding.plan.slab), FormatSize(finding.lower_bound),
                    FormatShare(planner::Gap(finding.plan.slab, finding.lower_bound)));
    // A search has refuted what is below, or the streams were to lie apart: neither is to be seen in the input.
    if (const Bytes stated = finding.plan.lower_bound; stated > finding.lower_bound) {
      text += fmt::format("not checked: the plan's own lower bound, {}, by which the gap is {}\n",
                          FormatSize(stated), FormatShare(planner::Gap(finding.plan.slab, stated)));
    }
    return text;
  }
  std::string text = fmt::format("invalid: {}\n", Printable(MessageOf(finding.verdict)));
  if (finding.overlap && finding.input.is_lifetimes()) {
    const auto id = [&](int64_t buffer) {
      return Printable(NameOfBuffer(finding.input, static_cast<size_t>(buffer)));
    };
    text += fmt::format("buffer {} has the id {}, buffer {} the id {}\n", finding.overlap->first,
                        id(finding.overlap->first), finding.overlap->second, id(finding.overlap->second));
  }
  return text;
}

int CheckPlan(const CheckOptions& options) {
  const absl::StatusOr<LoadedInput> input = LoadAllocations(options.input);
  if (!input.ok()) return Fail(input.status(), kBadInput);
  const absl::StatusOr<planner::Problem> problem = ProblemOf(*input);
  if (!problem.ok()) return Fail(problem.status(), kBadInput);
  const absl::StatusOr<planner::Plan> plan =
      planner::ReadPlan(options.plan == "-" ? "/dev/stdin" : options.plan);
  if (!plan.ok()) return Fail(plan.status(), kBadInput);
  if (const absl::Status belongs = planner::CheckPlanIsFor(*problem, *plan); !belongs.ok()) {
    return Fail(fmt::format("{}: {}", options.plan, MessageOf(belongs)), kBadInput);
  }

  Finding finding{*input, *problem, *plan, {}, {}, planner::LowerBound(*problem)};
  finding.verdict = planner::CheckPlacement(*problem, {plan->offsets, plan->slab}, &finding.overlap);
  const bool valid = finding.verdict.ok();
  const int exit_status =
      Finish(options.json ? FindingJson(finding) : FindingText(finding), valid ? kFine : kNegative);
  if (!options.json && !valid) SayNextOf("plan", options.input, " -o NEW.plan.json");
  if (!options.json && valid && !input->is_lifetimes()) {
    SayNextOf("simulate", options.input);
  } else if (!options.json && valid) {
    SayNextOf("stats", options.input);
  }
  return exit_status;
}

}  // namespace

void AddCheck(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("check", "Validate a plan against its input");
  const auto options = std::make_shared<CheckOptions>();
  command
      ->add_option("INPUT", options->input,
                   "The input that was planned: trace, event CSV, lifetime CSV or snapshot")
      ->required();
  command->add_option("PLAN", options->plan, "The plan file")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Status 1: the plan is invalid, the first overlap is named. Status 3: an input that cannot be read, or "
      "a "
      "plan\nthat was made for another input.\n\nExample:\n  reprise check trace.reprise job.plan.json");
  command->callback([options, &exit_status] { exit_status = CheckPlan(*options); });
}

}  // namespace reprise::cli
