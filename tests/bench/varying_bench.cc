// What the engine makes of jobs that vary, as one table: a row a stream, the median of several seeds and the
// worst.
//
//   varying_bench [--final] [--seeds N] [--each | --models] [--only NAME,NAME] [--plan-seconds S]
//                 [--second-run] [--without RULE,RULE] [--times N] [--behind N] [--host]
//
// Seeds for choosing rules (the default) and for final figures (--final) are apart: varying_streams.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "replay/host_memory.h"
#include "replay/models/models.h"
#include "replay/models/run_model.h"
#include "replay/simulator.h"
#include "tests/replay/varying_streams.h"

namespace {

using reprise::replay::Counters;
using reprise::replay::MakeVaryingStream;
using reprise::replay::Share;
using reprise::replay::SimulationResult;
using reprise::replay::Variation;
using reprise::replay::VaryingStream;

// Noise adds tokens to a round: what is found so near to the truth is the truth.
constexpr int64_t kNearby = 16;

struct Row {
  uint64_t seed = 0;
  std::vector<double> models;  // what each would have reserved, over the live peak
  VaryingStream stream;
  SimulationResult result;

  double reserved() const { return Share(result.reserved_peak.count(), result.counters.live_peak.count()); }
  // The period found last is a true one; of jobs that take turns, each has a plan.
  bool found() const {
    const std::vector<int64_t>& truth = stream.periods;
    const auto near = [](int64_t period) {
      return [period](int64_t other) { return std::abs(period - other) <= kNearby; };
    };
    if (!stream.apart)
      return truth.empty() || std::any_of(truth.begin(), truth.end(), near(result.counters.period));
    return std::all_of(truth.begin(), truth.end(), [&](int64_t period) {
      return std::any_of(result.plans.begin(), result.plans.end(), [&](const auto& plan) {
        return near(period)(static_cast<int64_t>(plan.cycle.size()));
      });
    });
  }
};

// What is too small to be of the cycle stays so.
void Enlarge(std::vector<reprise::profiler::Event>& events, int64_t times) {
  for (reprise::profiler::Event& event : events) {
    if (event.bytes >= reprise::replay::kSmallBlock) event.bytes = event.bytes * times;
  }
}

std::string Joined(const std::vector<int64_t>& numbers) {
  if (numbers.empty()) return "-";
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : "|") + std::to_string(number);
  return text;
}

void PrintSeed(std::string_view name, const Row& row) {
  const Counters& c = row.result.counters;
  fmt::print("| {} {} | {} | {} | {}{} | {:.4f} | {:.4f} | {} | {} | {} | {} | {} |\n", name, row.seed,
             c.requests, Joined(row.stream.periods), c.period, row.found() ? "" : " (!)", row.reserved(),
             row.result.planned_bytes_after_plan, c.passed, row.result.overlaps, c.plans, c.conflicts,
             c.granules_moved);
  std::fflush(stdout);
}

// The least, the median and the most of what `value` says of each row.
template <typename Value>
std::array<double, 3> Spread(const std::vector<Row>& rows, Value value) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(static_cast<double>(value(row)));
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

void PrintAll(std::string_view name, const std::vector<Row>& rows) {
  const auto requests = Spread(rows, [](const Row& row) { return row.result.counters.requests; });
  const auto reserved = Spread(rows, [](const Row& row) { return row.reserved(); });
  const auto planned = Spread(rows, [](const Row& row) { return row.result.planned_bytes_after_plan; });
  const auto passed = Spread(rows, [](const Row& row) { return row.result.counters.passed; });
  const auto overlaps = Spread(rows, [](const Row& row) { return row.result.overlaps; });
  const auto plans = Spread(rows, [](const Row& row) { return row.result.counters.plans; });
  const auto conflicts = Spread(rows, [](const Row& row) { return row.result.counters.conflicts; });
  const auto moved = Spread(rows, [](const Row& row) { return row.result.counters.granules_moved; });
  int64_t periodic = 0;
  int64_t found = 0;
  for (const Row& row : rows) {
    if (row.stream.periods.empty()) continue;
    ++periodic;
    found += row.found();
  }
  fmt::print(
      "| {} | {:.0f} | {} | {:.4f} | {:.4f} | {:.3f} | {:.3f} | {:.0f} | {:.0f} | {:.0f} to {:.0f} | {:.0f} "
      "| {:.0f} |\n",
      name, requests[1], periodic == 0 ? "none" : fmt::format("{} of {}", found, periodic), reserved[1],
      reserved[2], planned[1], planned[0], passed[2], overlaps[2], plans[0], plans[2], conflicts[1],
      moved[1]);
  std::fflush(stdout);
}

// What others would have reserved for the same events, beside the engine: median and worst.
void PrintModelsHead() {
  std::string names, line = "|---|---|";
  for (const reprise::replay::ModelInfo& model : reprise::replay::Models()) {
    names += fmt::format(" {} |", model.name);
    line += "---|";
  }
  fmt::print("| stream | reprise |{}\n{}\n", names, line);
}

void PrintModels(std::string_view name, const std::vector<Row>& rows) {
  const auto cell = [&](auto value) {
    const auto spread = Spread(rows, value);
    return fmt::format(" {:.4f} ({:.4f}) |", spread[1], spread[2]);
  };
  std::string cells = cell([](const Row& row) { return row.reserved(); });
  for (size_t m = 0; m < rows.front().models.size(); ++m) {
    cells += cell([m](const Row& row) { return row.models[m]; });
  }
  fmt::print("| {} |{}\n", name, cells);
  std::fflush(stdout);
}

void RunModels(Row& row) {
  for (const reprise::replay::ModelInfo& info : reprise::replay::Models()) {
    const auto model = info.make(reprise::Bytes(0));
    const reprise::replay::ModelResult result = RunModel(row.stream.events, *model);
    row.models.push_back(Share(result.reserved_peak.count(), row.result.counters.live_peak.count()));
  }
}

// What is asked for on the command line.
struct Asked {
  bool final_seeds = false;
  bool each = false;
  bool models = false;
  bool host = false;
  uint64_t seeds = 5;
  int64_t times = 1;
  std::vector<std::string> only;
  std::vector<std::string> without;
  reprise::replay::SimulationOptions options;
};

std::map<std::string, bool*> RulesOf(reprise::replay::SimulationOptions& options) {
  return {{"plan-set", &options.sequence_rules.plan_set},
          {"replan", &options.sequence_rules.replan},
          {"lay-again", &options.sequence_rules.lay_again},
          {"first-cycle", &options.sequence_rules.first_cycle},
          {"entries", &options.sequence_rules.entries},
          {"rest", &options.sequence_rules.rest},
          {"keep-places", &options.sequence_rules.keep_places},
          {"turns", &options.sequence_rules.turns},
          {"beside", &options.sequence_rules.beside},
          {"lag", &options.sequence_rules.lag},
          {"plan-lends", &options.arena_rules.plan_lends},
          {"waits", &options.arena_rules.waits},
          {"plan-yields", &options.arena_rules.plan_yields},
          {"hold-back", &options.period_rules.hold_back},
          {"challenge", &options.period_rules.challenge},
          {"doubt", &options.period_rules.doubt}};
}

void AddOptions(CLI::App& app, Asked& asked) {
  app.add_flag("--final", asked.final_seeds, "The seeds that no rule was chosen on");
  app.add_flag("--models", asked.models, "What other allocators would have reserved")
      ->excludes(app.add_flag("--each", asked.each, "A row a seed"));
  app.add_option("--seeds", asked.seeds, "How many");
  app.add_option("--only", asked.only, "Names of streams")->delimiter(',');
  app.add_option("--times", asked.times, "Blocks so many times as large, beside granules that stay")
      ->check(CLI::PositiveNumber);
  std::vector<std::string> names;
  for (const auto& [name, rule] : RulesOf(asked.options)) names.push_back(name);
  app.add_option("--without", asked.without, "Rules to leave out")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_flag("--second-run", asked.options.second_run,
               "Beginning with the plans that a first run has left");
  app.add_option("--behind", asked.options.behind,
                 "Allocations by which the device and the planner are behind")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--host", asked.host, "Memory in granules as in host mode, not as on a GPU");
  app.add_option("--plan-seconds", asked.options.plan_seconds, "Budget of one planning");
}

void PrintHead(const Asked& asked) {
  if (asked.models) return PrintModelsHead();
  fmt::print(
      "| {} | requests |{} | passed | overlaps | plans | conflicts | granules moved "
      "|\n{}|---|---|---|---|---|\n",
      asked.each ? "stream, seed" : "stream",
      asked.each ? " period | found | reserved / live | planned bytes"
                 : " period found | reserved / live | worst | planned bytes | least",
      asked.each ? "|---|---|---|---|---|---|" : "|---|---|---|---|---|---|---|");
}

// False: the engine cannot be had, and why has been said.
bool RunVariation(Variation variation, const Asked& asked) {
  const std::string_view name = NameOf(variation);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < asked.seeds; ++i) {
    Row row;
    row.seed = (asked.final_seeds ? reprise::replay::kFinalSeeds : reprise::replay::kTuningSeeds) + i;
    row.stream = MakeVaryingStream(variation, row.seed);
    Enlarge(row.stream.events, asked.times);
    auto result = reprise::replay::Simulate(row.stream.events, asked.options);
    if (!result.ok()) {
      fmt::print(stderr, "{}: {}\n", name, result.status().ToString());
      return false;
    }
    row.result = *std::move(result);
    if (asked.models) RunModels(row);
    row.stream.events = {};
    if (asked.each) PrintSeed(name, row);
    rows.push_back(std::move(row));
  }
  if (asked.models) {
    PrintModels(name, rows);
  } else if (!asked.each) {
    PrintAll(name, rows);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the engine makes of jobs that vary");
  Asked asked;
  AddOptions(app, asked);
  CLI11_PARSE(app, argc, argv);
  if (asked.host) asked.options.granule = reprise::replay::HostMemory::kGranule;
  for (const std::string& name : asked.without) *RulesOf(asked.options).at(name) = false;
  PrintHead(asked);
  for (const Variation variation : reprise::replay::kVariations) {
    const bool wanted =
        asked.only.empty() || std::ranges::find(asked.only, NameOf(variation)) != asked.only.end();
    if (wanted && !RunVariation(variation, asked)) return 1;
  }
  return 0;
}
