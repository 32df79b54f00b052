// reprise stats: what an input amounts to.
#include "profiler/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "cli/symbols.h"
#include "planner/bound.h"
#include "planner/problem.h"
#include "profiler/sites.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSizesShown = 5;  // for people; all under --json
constexpr size_t kSitesShown = 10;
constexpr int kBarWidth = 24;

struct StatsOptions {
  std::vector<std::string> inputs;
  bool json = false;
};

struct InputStats {
  LoadedInput input;
  profiler::Stats stats;
  Bytes lower_bound;
  SymbolCounts symbols;
  profiler::SitesLive sites;  // at the peak; empty where no stacks were recorded
};

// Lifetimes as the events that they stand for.
struct Timeline {
  std::vector<profiler::Event> events;
  std::vector<Tick> ticks;  // of each event, as the file counts them
};

Timeline TimelineOf(const std::vector<profiler::Lifetime>& lifetimes) {
  struct Change {
    Tick tick;
    bool alloc;
    size_t index;
  };
  std::vector<Change> changes;
  changes.reserve(2 * lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    changes.push_back({lifetimes[i].lower, true, i});
    for (const profiler::Lifetime::Gap& gap : lifetimes[i].gaps) {
      changes.push_back({gap.lower, false, i});
      changes.push_back({gap.upper, true, i});
    }
    changes.push_back({lifetimes[i].upper, false, i});
  }
  // Half-open: at one tick the frees come first.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.alloc < b.alloc;
  });
  Timeline timeline;
  for (const Change& change : changes) {
    profiler::Event event;
    event.kind = change.alloc ? profiler::EventKind::kAlloc : profiler::EventKind::kFree;
    event.id = BlockId{change.index};
    if (change.alloc) event.bytes = lifetimes[change.index].size;
    timeline.events.push_back(event);
    timeline.ticks.push_back(change.tick);
  }
  return timeline;
}

absl::StatusOr<InputStats> StatsOfFile(const std::string& path) {
  absl::StatusOr<LoadedInput> input = LoadInput(path);
  if (!input.ok()) return input.status();
  InputStats result{*std::move(input), {}, {}};
  if (result.input.is_lifetimes()) {
    const Timeline timeline = TimelineOf(result.input.content.lifetimes);
    result.stats = profiler::StatsOf(timeline.events);
    if (result.stats.allocs > 0) {
      result.stats.peak_at = timeline.ticks[static_cast<size_t>(result.stats.peak_at)].count();
    }
    // The file is one iteration; what repeats inside is none.
    result.stats.iterations = 0;
    result.stats.iteration.reset();
  } else {
    profiler::Trace& trace = result.input.content.trace;
    result.stats = profiler::StatsOf(trace.events);
    if (trace.stacks.stacks() > 0) {
      result.symbols = NameNativeFrames(&trace.stacks);
      result.sites =
          profiler::SitesLiveAt(trace.events, trace.stacks, static_cast<size_t>(result.stats.peak_at));
    }
  }
  if (result.stats.allocs == 0) return result;
  const absl::StatusOr<planner::Problem> problem = ProblemOf(result.input);
  if (!problem.ok()) return problem.status();
  if (const absl::Status valid = planner::Validate(*problem); !valid.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", result.input.name, MessageOf(valid)));
  }
  result.lower_bound = planner::LowerBound(*problem);
  return result;
}

std::string_view NameOf(profiler::InputFormat format) {
  switch (format) {
    case profiler::InputFormat::kTrace:
      return "trace";
    case profiler::InputFormat::kEventCsv:
      return "event CSV";
    case profiler::InputFormat::kLifetimeCsv:
      return "lifetime CSV";
    case profiler::InputFormat::kSnapshot:
      break;
  }
  return "snapshot";
}

// Of the bytes at the peak, those whose site is known.
double AttributedShare(const InputStats& result) {
  return result.sites.live > Bytes(0) ? static_cast<double>(result.sites.attributed.count()) /
                                            static_cast<double>(result.sites.live.count())
                                      : 0;
}

// One object on one line, so that several inputs give JSON lines.
std::string StatsJson(const InputStats& result) {
  const profiler::Stats& stats = result.stats;
  Json json = {{"input", result.input.name},
               {"format", NameOf(result.input.content.format)},
               {"events", stats.events},
               {"allocs", stats.allocs},
               {"frees", stats.frees},
               {"marks", stats.marks},
               {"allocated", stats.allocated.count()},
               {"live_peak", stats.live_peak.count()},
               {"peak_at", stats.peak_at},
               {"lower_bound", result.lower_bound.count()},
               {"live_at_end", stats.live_at_end.count()},
               {"dropped", result.input.content.trace.dropped},
               {"iterations", stats.iterations},
               {"iteration", nullptr},
               {"histogram", Json::array()},
               {"at_peak", Json::array()},
               {"attributed", AttributedShare(result)},
               {"frames_without_symbols", result.symbols.unnamed},
               {"sites", Json::array()}};
  if (const auto& iteration = stats.iteration) {
    json["iteration"] = {{"tokens", iteration->tokens},
                         {"found_at", iteration->first},
                         {"persistent", iteration->persistent.count()},
                         {"peak", iteration->peak.count()},
                         {"allocated", iteration->allocated.count()}};
  }
  for (const profiler::SizeClass& c : stats.histogram) {
    json["histogram"].push_back({{"from", c.from.count()}, {"blocks", c.blocks}, {"bytes", c.bytes.count()}});
  }
  for (const profiler::SizeCount& c : stats.at_peak) {
    json["at_peak"].push_back({{"size", c.size.count()}, {"blocks", c.blocks}});
  }
  for (const profiler::SiteShare& share : result.sites.sites) {
    json["sites"].push_back({{"site", share.site.label},
                             {"file", share.site.file},
                             {"line", share.site.line},
                             {"function", share.site.function},
                             {"library", share.site.library},
                             {"bytes", share.bytes.count()},
                             {"blocks", share.blocks}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Row(std::string_view name, std::string_view value, std::string_view meaning) {
  return fmt::format("  {:<13}{:>12}  {}\n", name, value, meaning);
}

std::string IterationRows(const InputStats& result) {
  const profiler::Stats& stats = result.stats;
  if (result.input.is_lifetimes()) return "";
  if (!stats.iteration) return Row("iterations", "none", "the sequence does not repeat");
  const profiler::IterationStats& iteration = *stats.iteration;
  return Row("iterations", fmt::format("{}", stats.iterations),
             fmt::format("of {} allocations of at least 4 KiB, found at event {}", iteration.tokens,
                         iteration.first)) +
         Row("persistent", FormatSize(iteration.persistent), "live from one iteration to the next") +
         Row("iteration", FormatSize(iteration.peak - iteration.persistent),
             fmt::format("on top of that at its peak; allocates {}", FormatSize(iteration.allocated)));
}

std::string HistogramRows(const profiler::Stats& stats) {
  int64_t most = 1;
  for (const profiler::SizeClass& c : stats.histogram) most = std::max(most, c.blocks);
  std::string text = "  sizes from        blocks         bytes\n";
  for (const profiler::SizeClass& c : stats.histogram) {
    const auto width = static_cast<size_t>((c.blocks * kBarWidth + most - 1) / most);
    text += fmt::format("  {:>10}  {:>12}  {:>12}  {}\n", FormatSize(c.from), c.blocks, FormatSize(c.bytes),
                        std::string(width, '#'));
  }
  return text;
}

std::string PeakRows(const profiler::Stats& stats) {
  std::string text = "  most bytes at the peak\n";
  for (size_t i = 0; i < std::min(kSizesShown, stats.at_peak.size()); ++i) {
    const profiler::SizeCount& c = stats.at_peak[i];
    text += fmt::format("  {:>10}  x {:<10}  {:>12}  {}\n", FormatSize(c.size), c.blocks,
                        FormatSize(c.size * c.blocks),
                        FormatShare(static_cast<double>((c.size * c.blocks).count()) /
                                    static_cast<double>(stats.live_peak.count())));
  }
  return text;
}

std::string SiteRows(const InputStats& result) {
  if (result.sites.sites.empty()) return "";
  std::string text = fmt::format("  top sites at the peak; {} of its bytes have one\n",
                                 FormatShare(AttributedShare(result)));
  for (size_t i = 0; i < std::min(kSitesShown, result.sites.sites.size()); ++i) {
    const profiler::SiteShare& share = result.sites.sites[i];
    const std::string library = share.site.library.empty() ? "" : fmt::format(" ({})", share.site.library);
    text += fmt::format("  {:>10}  {:>6}  in {} blocks  {}{}\n", FormatSize(share.bytes),
                        FormatShare(static_cast<double>(share.bytes.count()) /
                                    static_cast<double>(result.sites.live.count())),
                        share.blocks, share.site.label, library);
  }
  if (result.sites.sites.size() > kSitesShown) {
    text += fmt::format("  and {} more, under --json\n", result.sites.sites.size() - kSitesShown);
  }
  if (result.symbols.unnamed > 0) {
    text += fmt::format(
        "  {} of {} native frames have no name; of {} modules, {} are gone or another build\n",
        result.symbols.unnamed, result.symbols.frames, result.symbols.modules, result.symbols.other_builds);
  }
  return text;
}

std::string StatsText(const InputStats& result) {
  const profiler::Stats& stats = result.stats;
  std::string text = fmt::format("{}: {}\n", result.input.name, NameOf(result.input.content.format));
  if (result.input.is_lifetimes()) {
    text += Row("buffers", fmt::format("{}", stats.allocs), "");
  } else {
    text += Row("events", fmt::format("{}", stats.events),
                fmt::format("{} allocations of {}, {} frees, {} marks", stats.allocs,
                            FormatSize(stats.allocated), stats.frees, stats.marks));
  }
  if (stats.allocs == 0) return text;
  text += Row("live peak", FormatSize(stats.live_peak),
              fmt::format("first at {} {}", result.input.is_lifetimes() ? "tick" : "event", stats.peak_at));
  text += Row("lower bound", FormatSize(result.lower_bound), "no slab for all of it can be smaller");
  if (!result.input.is_lifetimes()) {
    text += Row("live at end", FormatSize(stats.live_at_end), "");
  }
  return text + IterationRows(result) + HistogramRows(stats) + PeakRows(stats) + SiteRows(result);
}

int Stats(const StatsOptions& options) {
  int exit_status = kFine;
  const std::string* events = nullptr;
  for (const std::string& path : options.inputs) {
    const absl::StatusOr<InputStats> result = StatsOfFile(path);
    if (!result.ok()) {
      exit_status = Fail(result.status(), kBadInput);
      continue;
    }
    if (!result->input.is_lifetimes()) events = &path;
    const absl::Status written = WriteStdout(options.json ? StatsJson(*result) : StatsText(*result));
    if (!written.ok()) return Fail(written, kUsage);
  }
  if (options.json) return exit_status;
  if (events != nullptr) {
    SayNext(fmt::format("simulate {}", ShellQuoted(*events)));
  } else {
    SayNext(fmt::format("plan {} -o FILE.plan.json", ShellQuoted(options.inputs.back())));
  }
  return exit_status;
}

}  // namespace

void AddStats(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("stats", "Show peak, lower bound, sizes and iterations");
  const auto options = std::make_shared<StatsOptions>();
  command
      ->add_option("INPUT", options->inputs,
                   "Traces, event CSVs, lifetime CSVs or snapshots; - for standard input")
      ->required();
  command->add_flag("--json", options->json,
                    "Print one JSON object an INPUT, each on a line, sizes in bytes");
  command->footer(
      "Sites are there where the trace was recorded with --stacks; a native function is named only from the "
      "very build that ran.\nIterations are found as the engine finds them; marks are counted, never "
      "consulted.\n\nExample:\n  "
      "reprise "
      "stats reprise-out/trace.reprise");
  command->callback([options, &exit_status] { exit_status = Stats(*options); });
}

}  // namespace reprise::cli
