// reprise simulate: what the engine would have done with recorded events.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/json_text.h"
#include "cli/options.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "profiler/lifetimes.h"
#include "replay/counters_json.h"
#include "replay/host_memory.h"
#include "replay/simulator.h"

namespace reprise::cli {
namespace {

// A device's queue holds far less.
constexpr int64_t kMostBehind = 1'000'000;

struct SimulateOptions {
  std::string input;
  std::optional<Bytes> capacity;
  bool second_run = false;
  int64_t behind = 0;
  bool cuda = false;
  bool host = false;
  bool json = false;
};

std::string ResultJson(const replay::SimulationResult& result) {
  nlohmann::ordered_json json;
  replay::ForEachCounter(result.counters, [&](const char* name, auto value) { json[name] = value; });
  json["host_waits"] = result.counters.host_waits;
  json["reserved_peak"] = result.reserved_peak.count();  // as the memory itself has counted it
  json["granule"] = result.granule.count();
  json["overlaps"] = result.overlaps;
  json["seconds"] = result.seconds;
  return JsonText(json);
}

std::string Row(std::string_view name, std::string_view value, std::string_view meaning) {
  return fmt::format("{:<15}{:>12}  {}\n", name, value, meaning);
}

std::string Count(int64_t count) { return fmt::format("{}", count); }

std::string PlanRows(const replay::SimulationResult& result) {
  const replay::Counters& c = result.counters;
  if (c.plans == 0) return Row("slab", "none", "no plan was adopted");
  return Row("iterations", Count(c.iterations),
             fmt::format("found, the last of {} allocations of at least 4 KiB", c.period)) +
         Row("plans", Count(c.plans),
             fmt::format("adopted, the first in iteration {}", c.first_planned_iteration)) +
         Row("planned", FormatShare(result.planned_bytes_after_plan),
             fmt::format("of the bytes since the first plan, {} of the requests, those of at least 4 KiB",
                         FormatShare(result.planned_after_plan))) +
         Row("slab", FormatSize(c.slab),
             fmt::format("height of the last plan; lower bound {}", FormatSize(c.lower_bound)));
}

std::string RowIfAny(std::string_view name, int64_t count, std::string_view means) {
  return count == 0 ? "" : Row(name, Count(count), means);
}

std::string ResultText(const replay::SimulationResult& result) {
  const replay::Counters& c = result.counters;
  // What found no room is live, and no part of what is held: the one is no share of the other then.
  const std::string share =
      c.passed > 0 ? "without what was left to the real allocator"
                   : fmt::format("{:.3f} of the live peak",
                                 replay::Share(result.reserved_peak.count(), c.live_peak.count()));
  return Row("requests", Count(c.requests),
             fmt::format("{} placed by plan, {} by best fit, {} left to the real allocator", c.planned,
                         c.arena, c.passed)) +
         PlanRows(result) + Row("live peak", FormatSize(c.live_peak), "the most the job held at once") +
         Row("reserved peak", FormatSize(result.reserved_peak),
             fmt::format("the most held for it, {}, in granules of {}", share, FormatSize(result.granule))) +
         Row("conflicts", Count(c.conflicts), "planned places that were taken") +
         Row("mismatches", Count(c.mismatches),
             fmt::format("requests that the plan did not expect; lost {} times", c.times_lost)) +
         RowIfAny("withheld", c.withheld, "planned, and too much of the plan lay elsewhere to follow it") +
         RowIfAny("host waits", c.host_waits, "of the host for the device, for memory to move") +
         Row("overlaps", Count(result.overlaps), "live blocks that shared bytes; must be 0") +
         Row("time", FormatDuration(result.seconds), "of the simulation");
}

// Where nothing is said, and the input is no trace, a device's: that is what most are recorded for.
Bytes GranuleOf(const LoadedInput& input, const SimulateOptions& options) {
  const Bytes recorded = input.content.trace.metadata.granule;
  if (options.host) return replay::HostMemory::kGranule;
  return options.cuda || recorded == Bytes(0) ? replay::kDeviceGranule : recorded;
}

absl::StatusOr<replay::SimulationResult> Simulated(const LoadedInput& input, const SimulateOptions& options,
                                                   Bytes capacity) {
  return replay::Simulate(input.content.trace.events, {.capacity = capacity,
                                                       .granule = GranuleOf(input, options),
                                                       .second_run = options.second_run,
                                                       .behind = options.behind});
}

// Whether it is the capacity that so many requests did not fit in, and not what the engine can hold at most.
absl::StatusOr<bool> CapacityIsTooLittle(const LoadedInput& input, const SimulateOptions& options,
                                         int64_t passed) {
  if (!options.capacity) return false;
  if (profiler::LivePeakOf(input.content.trace.events).bytes > *options.capacity) return true;
  const auto unlimited = Simulated(input, options, Bytes(0));
  if (!unlimited.ok()) return unlimited.status();
  return unlimited->counters.passed < passed;
}

int Simulate(const SimulateOptions& options) {
  const absl::StatusOr<LoadedInput> input = LoadEvents(options.input, "simulate");
  if (!input.ok()) return Fail(input.status(), kBadInput);
  const absl::StatusOr<replay::SimulationResult> result =
      Simulated(*input, options, options.capacity.value_or(Bytes(0)));
  if (!result.ok()) {
    return Fail(fmt::format("{}: {}", input->name, MessageOf(result.status())),
                absl::IsInvalidArgument(result.status()) ? kBadInput : kUsage);
  }
  int exit_status = kFine;
  if (const int64_t passed = result->counters.passed; passed > 0) {
    const absl::StatusOr<bool> too_little = CapacityIsTooLittle(*input, options, passed);
    if (!too_little.ok())
      return Fail(fmt::format("{}: {}", input->name, MessageOf(too_little.status())), kUsage);
    if (*too_little) {
      Say(fmt::format("does not fit: {} requests did not find room in {} bytes", passed,
                      options.capacity->count()));
      exit_status = kDoesNotFit;
    } else {
      Say(
          fmt::format("{} requests did not find room in the engine's range of addresses, which no capacity "
                      "makes larger; nothing is reserved for them",
                      passed));
      exit_status = options.capacity ? kNegative : kFine;
    }
  }
  if (result->overlaps > 0) {
    Say("live blocks have shared bytes: this is a defect of Reprise, please report it with the input");
    exit_status = kNegative;
  }
  exit_status = Finish(options.json ? ResultJson(*result) : ResultText(*result), exit_status);
  if (!options.json) SayNextOf("plan", options.input, " -o FILE.plan.json");
  return exit_status;
}

}  // namespace

void AddSimulate(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("simulate", "Feed recorded events through the engine: what would have been served");
  const auto options = std::make_shared<SimulateOptions>();
  command->add_option("INPUT", options->input, "Trace, event CSV or snapshot; - for standard input")
      ->required();
  AddSizeOption(*command, "--capacity", options->capacity,
                "The most memory to hold; status 4 if it is too little");
  CLI::Option* const cuda = command->add_flag(
      "--cuda", options->cuda,
      "Memory in granules of 2 MiB, as on a GPU; so is an input that does not say where it was recorded");
  command->add_flag("--host", options->host, "Memory in granules of 256 KiB, as in host mode")
      ->excludes(cuda);
  command->add_flag("--second-run", options->second_run,
                    "As the job's next run, which begins with the plans that this one has left");
  command
      ->add_option(
          "--behind", options->behind,
          "Allocations by which the device and the planner are behind the job, as it queues its work")
      ->check(CLI::Range(int64_t{0}, kMostBehind).description(""))
      ->type_name("N");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "The engine is the one that serves a job; only the memory is not real.\n\nExample:\n  reprise simulate "
      "reprise-out/trace.reprise --capacity 16GiB");
  command->callback([options, &exit_status] { exit_status = Simulate(*options); });
}

}  // namespace reprise::cli
