// reprise stats: what an input amounts to.
#include "profiler/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input_stats.h"
#include "cli/quantity.h"
#include "cli/stats_json.h"
#include "cli/status.h"

namespace reprise::cli {
namespace {

constexpr size_t kSizesShown = 5;  // for people; all under --json
constexpr size_t kMostShown = 10;
constexpr size_t kStreamsShown = 10;
constexpr int kBarWidth = 24;

struct StatsOptions {
  std::vector<std::string> inputs;
  bool json = false;
};

std::string StatRow(std::string_view name, std::string_view value, std::string_view meaning) {
  return fmt::format("  {:<13}{:>12}  {}\n", name, value, meaning);
}

std::string LeakRow(const profiler::Stats& stats) {
  if (!stats.leak) return "";
  const auto slope = static_cast<int64_t>(std::llround(stats.leak->bytes_per_iteration));
  return StatRow("leaking", FormatSignedSize(Bytes(slope)),
                 fmt::format("an iteration, by a line through the live bytes at {} cuts", stats.leak->cuts));
}

std::string PeaksRow(const profiler::Stats& stats) {
  if (!stats.peaks || stats.peaks->least == stats.peaks->most) return "";
  return StatRow("least peak", FormatSize(stats.peaks->least),
                 fmt::format("of an iteration; the highest of {} reaches {}", stats.peaks->rounds,
                             FormatSize(stats.peaks->most)));
}

std::string IterationRows(const MeasuredInput& result) {
  const profiler::Stats& stats = result.stats;
  if (result.input.is_lifetimes()) return "";
  if (!stats.iteration)
    return StatRow("iterations", "none", "nothing repeats and comes back to the same live bytes");
  const profiler::IterationStats& iteration = *stats.iteration;
  return StatRow("iterations", fmt::format("{}", stats.iterations),
                 fmt::format("the last of {} allocations of at least 4 KiB, first found at event {}",
                             iteration.tokens, iteration.first)) +
         StatRow("persistent", FormatSize(iteration.persistent), "live from one iteration to the next") +
         StatRow("iteration", FormatSize(iteration.peak - iteration.persistent),
                 fmt::format("on top of that at its peak; the {} take {} in all", iteration.tokens,
                             FormatSize(iteration.allocated))) +
         PeaksRow(stats) + LeakRow(stats);
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

std::string LifetimeRows(const MeasuredInput& result) {
  std::string text = fmt::format("  lived from  ({:>6})    blocks         bytes\n", result.lifetime_unit);
  int64_t most = 1;
  for (const profiler::LifetimeClass& c : result.stats.lifetimes) most = std::max(most, c.blocks);
  for (const profiler::LifetimeClass& c : result.stats.lifetimes) {
    const auto width = static_cast<size_t>((c.blocks * kBarWidth + most - 1) / most);
    text += fmt::format("  {:>10}  {:>12}  {:>12}  {}\n", c.from, c.blocks, FormatSize(c.bytes),
                        std::string(width, '#'));
  }
  return result.stats.lifetimes.empty() ? "" : text;
}

std::string SiteRows(const MeasuredInput& result) {
  if (result.sites_at_peak.empty()) return "";
  std::string text =
      fmt::format("  top sites at the peak; {} of its bytes have one\n", FormatShare(result.attributed));
  for (size_t i = 0; i < std::min(kMostShown, result.sites_at_peak.size()); ++i) {
    const profiler::SiteBytes& c = result.sites_at_peak[i];
    const profiler::Site& site = result.sites.sites[c.site];
    const std::string library = site.library.empty() ? "" : fmt::format(" ({})", Printable(site.library));
    text += fmt::format("  {:>10}  {:>6}  in {} blocks  {}{}\n", FormatSize(c.bytes),
                        FormatShare(static_cast<double>(c.bytes.count()) /
                                    static_cast<double>(result.stats.live_peak.count())),
                        c.blocks, Printable(site.label), library);
  }
  if (result.sites_at_peak.size() > kMostShown) {
    text += fmt::format("  and {} more, under --json\n", result.sites_at_peak.size() - kMostShown);
  }
  const SymbolCounts& symbols = result.input.symbols;
  if (symbols.unnamed > 0) {
    text +=
        fmt::format("  {} of {} native frames have no name; of {} modules, {} are gone or another build\n",
                    symbols.unnamed, symbols.frames, symbols.modules, symbols.other_builds);
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

// With one stream there is nothing to tell apart.
std::string StreamRows(const MeasuredInput& result) {
  if (result.streams.size() < 2) return "";
  std::string text = "  by stream         at the peak     peak alone        allocated\n";
  for (size_t i = 0; i < std::min(kStreamsShown, result.streams.size()); ++i) {
    const profiler::StreamUse& use = result.streams[i];
    text += fmt::format("  {:>16}  {:>12}  {:>13}  {:>15}  by {} allocations\n",
                        fmt::format("{:#x}", static_cast<uint64_t>(use.stream)), FormatSize(use.at_peak),
                        FormatSize(use.live_peak), FormatSize(use.allocated), use.allocs);
  }
  if (result.streams.size() > kStreamsShown) {
    text += fmt::format("  and {} more, under --json\n", result.streams.size() - kStreamsShown);
  }
  return text;
}

std::string LibraryRows(const MeasuredInput& result) {
  std::string text;
  for (const profiler::LibraryUse& use : result.libraries) {
    text += fmt::format("  {:>10}  {:>6}  in {} blocks  {}\n", FormatSize(use.bytes),
                        FormatShare(static_cast<double>(use.bytes.count()) /
                                    static_cast<double>(result.stats.live_peak.count())),
                        use.blocks, use.library.empty() ? "(not known)" : Printable(use.library));
  }
  return text.empty() ? "" : "  at the peak, by the library that asked\n" + text;
}

// Which rank's, and which device's, where there is more than one.
std::string Whose(const LoadedInput& input) {
  const profiler::TraceMetadata& metadata = input.content.trace.metadata;
  std::string whose;
  if (metadata.world_size > 1) whose = fmt::format(" of rank {} of {}", metadata.rank, metadata.world_size);
  if (const int64_t device = DeviceOf(input).value_or(0); device > 0)
    whose += fmt::format(", device {}", device);
  return whose;
}

// A template's name may be a page long.
std::string Shortened(std::string_view name) {
  constexpr size_t kMost = 90;
  return name.size() <= kMost ? Printable(name) : Printable(name.substr(0, kMost - 3)) + "...";
}

std::string DeviceRows(const MeasuredInput& result) {
  if (!result.device) return "";
  constexpr double kNs = 1e-9;
  const profiler::ActivityStats& device = *result.device;
  const profiler::StackTable& stacks = result.input.content.trace.stacks;
  std::string text;
  double all_ns = 0;
  for (const profiler::ActivityTotal& total : device.by_kind) {
    if (total.kind == profiler::ActivityKind::kMarker || total.count == 0) continue;
    all_ns += static_cast<double>(total.ns);
    const std::string moved = total.bytes > Bytes(0) ? fmt::format(", {}", FormatSize(total.bytes)) : "";
    text += StatRow(fmt::format("{} time", NameOf(total.kind)),
                    FormatDuration(static_cast<double>(total.ns) * kNs),
                    fmt::format("of the device's streams, in {}{}", total.count, moved));
  }
  if (!device.by_name.empty()) text += "  most time of the device\n";
  for (size_t i = 0; i < std::min(kMostShown, device.by_name.size()); ++i) {
    const profiler::ActivityTotal& total = device.by_name[i];
    text +=
        fmt::format("  {:>10}  {:>8}  x {:<10}  {}\n", FormatDuration(static_cast<double>(total.ns) * kNs),
                    FormatShare(static_cast<double>(total.ns) / std::max(1.0, all_ns)), total.count,
                    Shortened(NameOf(stacks, total.name)));
  }
  if (device.by_name.size() > kMostShown) {
    text += fmt::format("  and {} more, under --json\n", device.by_name.size() - kMostShown);
  }
  if (result.stats.allocs == 0) return text;  // and no peak
  text += "  under way when the peak was asked for\n";
  for (const profiler::Activity& activity : device.at) {
    const bool marker = activity.kind == profiler::ActivityKind::kMarker;
    text +=
        fmt::format("  {:>10}  {} {}  {}\n", FormatDuration(static_cast<double>(activity.duration_ns) * kNs),
                    marker ? "thread" : "stream", activity.track, Shortened(NameOf(stacks, activity.name)));
  }
  if (device.at.empty()) text += "  nothing: the device was idle\n";
  return text;
}

std::string StatsText(const MeasuredInput& result) {
  const profiler::Stats& stats = result.stats;
  std::string text = fmt::format("{}: {}{}\n", Printable(result.input.name),
                                 NameOf(result.input.content.format), Whose(result.input));
  if (result.input.is_lifetimes()) {
    text += StatRow("buffers", fmt::format("{}", stats.allocs), "");
  } else {
    text += StatRow("events", fmt::format("{}", stats.events),
                    fmt::format("{} allocations of {}, {} frees, {} marks", stats.allocs,
                                FormatSize(stats.allocated), stats.frees, stats.marks));
  }
  if (stats.allocs == 0) return text + DeviceRows(result);
  text +=
      StatRow("live peak", FormatSize(stats.live_peak),
              fmt::format("first at {} {}", result.input.is_lifetimes() ? "tick" : "event", stats.peak_at));
  text += StatRow("lower bound", FormatSize(result.lower_bound), "no slab for all of it can be smaller");
  if (!result.input.is_lifetimes()) {
    text += StatRow("live at end", FormatSize(stats.live_at_end), "");
  }
  return text + IterationRows(result) + HistogramRows(stats) + LifetimeRows(result) + PeakRows(stats) +
         StreamRows(result) + LibraryRows(result) + SiteRows(result) + DeviceRows(result);
}

int Stats(const StatsOptions& options) {
  int exit_status = kFine;
  const std::string* events = nullptr;
  const std::string* lifetimes = nullptr;
  for (const std::string& path : options.inputs) {
    const absl::StatusOr<MeasuredInput> result = Measured(LoadInput(path));
    if (!result.ok()) {
      exit_status = Fail(result.status(), kBadInput);
      continue;
    }
    if (result->stats.allocs > 0) (result->input.is_lifetimes() ? lifetimes : events) = &path;
    const absl::Status written =
        WriteStdout(options.json ? StatsJson(result->input, *result) : StatsText(*result));
    if (!written.ok()) return Fail(written, kUsage);
  }
  if (options.json) return exit_status;
  if (events != nullptr) {
    SayNextOf("simulate", *events);
  } else if (lifetimes != nullptr) {
    SayNextOf("plan", *lifetimes, " -o FILE.plan.json");
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
