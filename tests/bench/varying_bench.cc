// What the engine makes of jobs that vary: one row a stream and seed, or the worst of several seeds.
//
//   varying_bench [--final] [--seeds N] [--each] [--only NAME,NAME] [--plan-seconds S]
//
// Seeds for choosing rules (the default) and for final figures (--final) are apart: varying_streams.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "replay/simulator.h"
#include "tests/replay/varying_streams.h"

namespace {

using reprise::replay::Counters;
using reprise::replay::MakeVaryingStream;
using reprise::replay::Share;
using reprise::replay::SimulationResult;
using reprise::replay::Variation;
using reprise::replay::VaryingStream;

struct Row {
  int64_t requests = 0;
  std::vector<int64_t> periods;
  int64_t found = 0;
  double reserved = 0;  // peak, of the live peak
  double planned = 0;   // share by bytes after the first plan
  int64_t passed = 0, overlaps = 0, plans = 0, conflicts = 0;
  double live_mib = 0;
};

std::string Joined(const std::vector<int64_t>& numbers) {
  if (numbers.empty()) return "-";
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : "|") + std::to_string(number);
  return text;
}

void Print(std::string_view name, const Row& row) {
  fmt::print("| {:<16} | {:>7} | {:>6.0f} | {:>10} | {:>5} | {:.4f} | {:.4f} | {} | {} | {:>2} | {:>5} |\n",
             name, row.requests, row.live_mib, Joined(row.periods), row.found, row.reserved, row.planned,
             row.passed, row.overlaps, row.plans, row.conflicts);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the engine makes of jobs that vary");
  bool final_seeds = false;
  bool each = false;
  uint64_t seeds = 5;
  std::vector<std::string> only;
  reprise::replay::SimulationOptions options;
  app.add_flag("--final", final_seeds, "The seeds that no rule was chosen on");
  app.add_flag("--each", each, "A row a seed, not the worst of all");
  app.add_option("--seeds", seeds, "How many");
  app.add_option("--only", only, "Names of streams")->delimiter(',');
  app.add_option("--plan-seconds", options.plan_seconds, "Budget of one planning");
  CLI11_PARSE(app, argc, argv);

  fmt::print(
      "| stream | requests | live peak, MiB | period | found | reserved/live | planned bytes | passed | "
      "overlaps | "
      "plans | conflicts |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Variation variation : reprise::replay::kVariations) {
    const std::string name(NameOf(variation));
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    Row worst;
    for (uint64_t i = 0; i < seeds; ++i) {
      const uint64_t seed = (final_seeds ? reprise::replay::kFinalSeeds : reprise::replay::kTuningSeeds) + i;
      const VaryingStream stream = MakeVaryingStream(variation, seed);
      const auto result = reprise::replay::Simulate(stream.events, options);
      if (!result.ok()) {
        fmt::print(stderr, "{}: {}\n", name, result.status().ToString());
        return 1;
      }
      const Counters& c = result->counters;
      const Row row = {.requests = c.requests,
                       .periods = stream.periods,
                       .found = c.period,
                       .reserved = Share(result->reserved_peak.count(), c.live_peak.count()),
                       .planned = result->planned_bytes_after_plan,
                       .passed = c.passed,
                       .overlaps = result->overlaps,
                       .plans = c.plans,
                       .conflicts = c.conflicts,
                       .live_mib = static_cast<double>(c.live_peak.count()) / (1 << 20)};
      if (each) Print(name, row);
      if (i == 0 || row.reserved > worst.reserved) worst = row;
      std::fflush(stdout);
    }
    if (!each) Print(name, worst);
  }
  return 0;
}
