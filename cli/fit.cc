// reprise fit: the largest batch that fits, from the same job at other batches.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/contenders.h"
#include "cli/input_stats.h"
#include "cli/options.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "profiler/line_fit.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSitesShown = 10;                // for people; all under --json
constexpr int64_t kMostBatch = int64_t{1} << 53;  // different ones differ as doubles too
constexpr double kMovedShare = 0.01;              // of the peak, that is worth a word
constexpr Bytes kGranule{int64_t{2} << 20};       // that drivers hand memory out in

struct FitOptions {
  std::vector<std::string> inputs;  // INPUT@BATCH
  std::optional<Bytes> capacity;
  bool json = false;
};

// The job at one batch.
struct Run {
  int64_t batch = 0;
  LoadedInput input;
  InputStats stats;
  std::vector<Contender> contenders;
};

// What an allocator reserved beside the live peak, at each batch.
struct Overhead {
  struct Seen {
    double live = 0, reserved = 0;
    double ratio() const { return reserved / live; }
  };
  std::string name;
  std::vector<Seen> seen;  // by run
};

struct Largest {
  std::optional<int64_t> least, expected, most;  // none: it does not grow with the batch
};

// How much of a site is live at the peak, as a line of the batch.
struct SiteGrowth {
  std::string label;
  profiler::Line line;
  Bytes at_smallest;
  Bytes at_largest;
};

struct Result {
  std::vector<Run> runs;  // by batch
  profiler::LineFit live;
  std::vector<Overhead> overheads;
  std::vector<SiteGrowth> sites;  // fastest growing first; empty unless all inputs have stacks
  Bytes moved;  // live at the peak of the smallest batch, and no more at that of the largest
};

// "A.reprise@8". nullopt: no whole number from 1 to kMostBatch behind the last @.
std::optional<std::pair<std::string, int64_t>> SplitBatch(const std::string& word) {
  const size_t at = word.rfind('@');
  if (at == std::string::npos || at == 0) return std::nullopt;
  int64_t batch = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + at + 1, end, batch);
  if (error != std::errc() || stop != end || batch <= 0 || batch > kMostBatch) return std::nullopt;
  return std::pair(word.substr(0, at), batch);
}

absl::StatusOr<Run> RunOf(const std::string& path, int64_t batch) {
  absl::StatusOr<LoadedInput> input = LoadInput(path);
  if (!input.ok()) return input.status();
  if (input->is_lifetimes()) {
    return absl::InvalidArgumentError(fmt::format(
        "{}:1: a lifetime CSV; fit needs events in order, a trace, an event CSV or a snapshot", path));
  }
  absl::StatusOr<InputStats> stats = StatsOfInput(*input);
  if (!stats.ok()) return stats.status();
  if (stats->stats.allocs == 0) {
    return absl::InvalidArgumentError(fmt::format("{}: there is not one allocation in it", path));
  }
  absl::StatusOr<std::vector<Contender>> contenders =
      AllContenders(input->content.trace.events, std::nullopt);
  if (!contenders.ok()) return contenders.status();
  for (const Contender& c : *contenders) {
    if (!c.failed) continue;
    Say(fmt::format("{}: {}: found no room even without a limit; it is left out", path, c.name));
  }
  return Run{batch, *std::move(input), *std::move(stats), *std::move(contenders)};
}

// The most that is missing at the peak of `run` because its blocks were too small to be recorded, judged by
// those that are recorded at the largest batch and shrink with it.
Bytes Unrecorded(const Run& run, const Run& largest) {
  const double scale = static_cast<double>(run.batch) / static_cast<double>(largest.batch);
  const auto threshold = static_cast<double>(run.input.content.trace.metadata.threshold.count());
  double bytes = 0;
  for (const profiler::SizeCount& c : largest.stats.stats.at_peak) {
    const double here = scale * static_cast<double>(c.size.count());
    if (here < threshold) bytes += here * static_cast<double>(c.blocks);
  }
  return Bytes(static_cast<int64_t>(bytes));
}

Bytes Apart(const Run& run) {
  const auto& peaks = run.stats.stats.peaks;
  return peaks ? peaks->most - peaks->least : Bytes(0);
}

// What was recorded of one iteration is exact: what was not, and how far another's peak may lie from it, is
// not.
profiler::Measurement LivePeak(const Run& run, const Run& largest) {
  return {.x = static_cast<double>(run.batch),
          .y = static_cast<double>(run.stats.stats.live_peak.count()),
          .error = static_cast<double>((Apart(run) + Unrecorded(run, largest)).count())};
}

// Of who found room at each batch: what the others reserved until then is not what they need.
std::vector<Overhead> OverheadsOf(const std::vector<Run>& runs) {
  std::vector<Overhead> overheads;
  for (size_t i = 0; i < runs[0].contenders.size(); ++i) {
    if (std::ranges::any_of(runs, [i](const Run& run) { return run.contenders[i].failed; })) continue;
    Overhead overhead{.name = runs[0].contenders[i].name};
    for (const Run& run : runs) {
      overhead.seen.push_back({static_cast<double>(run.stats.stats.live_peak.count()),
                               static_cast<double>(run.contenders[i].reserved_peak.count())});
    }
    overheads.push_back(std::move(overhead));
  }
  return overheads;
}

void AddSites(Result& result) {
  const auto has_none = [](const Run& run) { return run.stats.sites_at_peak.empty(); };
  if (std::ranges::any_of(result.runs, has_none)) return;
  std::map<std::string, std::vector<Bytes>> bytes_of;  // by run
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const InputStats& stats = result.runs[i].stats;
    for (const profiler::SiteBytes& at : stats.sites_at_peak) {
      std::vector<Bytes>& bytes = bytes_of[stats.sites.sites[at.site].label];
      bytes.resize(result.runs.size());
      bytes[i] += at.bytes;
    }
  }
  for (const auto& [label, bytes] : bytes_of) {
    std::vector<profiler::Measurement> points;
    for (size_t i = 0; i < bytes.size(); ++i) {
      points.push_back({static_cast<double>(result.runs[i].batch), static_cast<double>(bytes[i].count())});
    }
    result.sites.push_back({label, profiler::LeastSquares(points), bytes.front(), bytes.back()});
    result.moved += std::max(Bytes(0), bytes.front() - bytes.back());
  }
  std::ranges::stable_sort(result.sites, std::ranges::greater(),
                           [](const SiteGrowth& site) { return site.line.slope; });
}

Result ResultOf(std::vector<Run> runs) {
  std::ranges::stable_sort(runs, std::ranges::less(), &Run::batch);
  Result result{.runs = std::move(runs)};
  std::vector<profiler::Measurement> points;
  points.reserve(result.runs.size());
  for (const Run& run : result.runs) points.push_back(LivePeak(run, result.runs.back()));
  result.live = profiler::FitLine(points);
  result.overheads = OverheadsOf(result.runs);
  AddSites(result);
  return result;
}

// How much of a capacity is left for live bytes, if what is reserved beside them is as many bytes or as large
// a share as at one of the batches; to a granule, which an allocator may need to begin.
struct Room {
  double least, expected, most;
};
Room RoomFor(const Overhead& overhead, double capacity) {
  Room room{capacity, capacity / overhead.seen.back().ratio(), 0};
  bool any = false;
  for (const Overhead::Seen& seen : overhead.seen) {
    any = any || seen.reserved != seen.live;
    const double as_share = capacity / seen.ratio(), as_bytes = capacity - (seen.reserved - seen.live);
    room.least = std::min({room.least, as_share, as_bytes});
    room.most = std::max({room.most, as_share, as_bytes});
  }
  if (!any) return room;
  room.least -= static_cast<double>(kGranule.count());
  room.most += static_cast<double>(kGranule.count());
  return room;
}

Largest LargestBatch(const profiler::LineFit& live, const Overhead& overhead, Bytes capacity) {
  const Room room = RoomFor(overhead, static_cast<double>(capacity.count()));
  Largest largest{.expected = profiler::LargestWithin(live.line, room.expected)};
  largest.least = largest.most = largest.expected;
  if (!largest.expected) return largest;
  for (const profiler::Line& line : live.extremes) {
    const auto least = profiler::LargestWithin(line, room.least);
    const auto most = profiler::LargestWithin(line, room.most);
    if (least) largest.least = std::min(*largest.least, *least);
    // One of the possible lines does not rise: nothing says where the end is.
    largest.most = most && largest.most ? std::optional(std::max(*largest.most, *most)) : std::nullopt;
  }
  return largest;
}

// What no allocator can do without.
Overhead LiveAlone() { return {.name = "live peak", .seen = {{1, 1}}}; }

std::pair<double, double> RatiosOf(const Overhead& overhead) {
  const auto [least, most] =
      std::ranges::minmax_element(overhead.seen, {}, [](const Overhead::Seen& seen) { return seen.ratio(); });
  return {least->ratio(), most->ratio()};
}

std::vector<Overhead> AllOf(const Result& result) {
  std::vector<Overhead> all = {LiveAlone()};
  all.insert(all.end(), result.overheads.begin(), result.overheads.end());
  return all;
}

std::string SignedSize(double bytes) {
  const auto count = static_cast<int64_t>(std::llround(bytes));
  return fmt::format("{}{}", count < 0 ? "-" : "", FormatSize(Bytes(std::abs(count))));
}

// What is known, and what is not, of the line.
std::string Caveats(const Result& result) {
  std::string text;
  if (result.runs.size() == 2) {
    text += "  two inputs are always on a line; a third one shows whether it bends\n";
  } else {
    text += fmt::format("  the inputs are within {} of it\n", SignedSize(result.live.residual));
  }
  for (const Run& run : result.runs) {
    const auto& peaks = run.stats.stats.peaks;
    if (!peaks) {
      text +=
          fmt::format("  {}: no iteration was found, so how far the peaks of others lie apart is not known\n",
                      run.input.name);
    } else if (Apart(run) > Bytes(0)) {
      text += fmt::format("  {}: the peaks of {} iterations lie {} apart\n", run.input.name, peaks->rounds,
                          FormatSize(Apart(run)));
    }
    if (const Bytes missing = Unrecorded(run, result.runs.back()); missing > Bytes(0)) {
      text += fmt::format("  {}: up to {} in blocks under {} were not recorded\n", run.input.name,
                          FormatSize(missing), FormatSize(run.input.content.trace.metadata.threshold));
    }
  }
  const Bytes peak = result.runs[0].stats.stats.live_peak;
  if (static_cast<double>(result.moved.count()) > kMovedShare * static_cast<double>(peak.count())) {
    text += fmt::format(
        "  {} that are live at the peak of batch {} are not at that of batch {}: the peak has moved to "
        "another\n"
        "  moment, from where on it grows faster than this line. Leave the smallest batch out\n",
        FormatSize(result.moved), result.runs.front().batch, result.runs.back().batch);
  }
  return text;
}

std::string SiteRows(const Result& result) {
  if (result.sites.empty()) return "";
  std::string text = "    a sample         fixed  site at the peak\n";
  for (size_t i = 0; i < std::min(kSitesShown, result.sites.size()); ++i) {
    const SiteGrowth& site = result.sites[i];
    text += fmt::format("{:>12}  {:>12}  {}\n", SignedSize(site.line.slope), SignedSize(site.line.at_zero),
                        site.label);
  }
  if (result.sites.size() > kSitesShown) {
    text += fmt::format("  and {} more, under --json\n", result.sites.size() - kSitesShown);
  }
  return text;
}

std::string BatchCell(const std::optional<int64_t>& batch) {
  return batch ? fmt::format("{}", *batch) : "no end";
}

std::string CapacityRows(const Result& result, Bytes capacity) {
  std::string text = fmt::format("largest batch within {}\n", FormatSize(capacity));
  text += fmt::format("  {:<17}{:>8}  {:>10}  {:>8}  {}\n", "", "at least", "expected", "at most",
                      "reserved / live");
  for (const Overhead& overhead : AllOf(result)) {
    const Largest largest = LargestBatch(result.live, overhead, capacity);
    const auto [least, most] = RatiosOf(overhead);
    text += fmt::format("  {:<17}{:>8}  {:>10}  {:>8}  {:.3f} to {:.3f}\n", overhead.name,
                        BatchCell(largest.least), BatchCell(largest.expected), BatchCell(largest.most), least,
                        most);
  }
  return text;
}

std::string ResultText(const Result& result, const std::optional<Bytes>& capacity) {
  std::string text = "     batch     live peak\n";
  for (const Run& run : result.runs) {
    text +=
        fmt::format("{:>10}  {:>12}  {}\n", run.batch, FormatSize(run.stats.stats.live_peak), run.input.name);
  }
  text += fmt::format("live peak = {} + {} a sample\n", SignedSize(result.live.line.at_zero),
                      SignedSize(result.live.line.slope));
  text += Caveats(result) + SiteRows(result);
  return capacity ? text + CapacityRows(result, *capacity) : text;
}

Json OrNull(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }

std::string ResultJson(const Result& result, const std::optional<Bytes>& capacity) {
  Json json = {{"inputs", Json::array()},
               {"live_peak",
                {{"fixed", result.live.line.at_zero},
                 {"per_sample", result.live.line.slope},
                 {"residual", result.live.residual}}},
               {"moved", result.moved.count()},
               {"capacity", capacity ? Json(capacity->count()) : Json(nullptr)},
               {"largest_batch", Json::array()},
               {"sites", Json::array()}};
  for (const Run& run : result.runs) {
    json["inputs"].push_back({{"input", run.input.name},
                              {"batch", run.batch},
                              {"live_peak", run.stats.stats.live_peak.count()},
                              {"error", LivePeak(run, result.runs.back()).error}});
  }
  for (const Overhead& overhead : AllOf(result)) {
    const auto [least, most] = RatiosOf(overhead);
    Json row = {{"name", overhead.name}, {"overhead_least", least}, {"overhead_most", most}};
    if (capacity) {
      const Largest largest = LargestBatch(result.live, overhead, *capacity);
      row["least"] = OrNull(largest.least);
      row["expected"] = OrNull(largest.expected);
      row["most"] = OrNull(largest.most);
    }
    json["largest_batch"].push_back(std::move(row));
  }
  for (const SiteGrowth& site : result.sites) {
    json["sites"].push_back({{"label", site.label},
                             {"fixed", site.line.at_zero},
                             {"per_sample", site.line.slope},
                             {"at_smallest", site.at_smallest.count()},
                             {"at_largest", site.at_largest.count()}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Fit(const FitOptions& options) {
  std::vector<Run> runs;
  for (const std::string& word : options.inputs) {
    const auto split = SplitBatch(word);
    if (!split) {
      return Fail(fmt::format("\"{}\" names no batch from 1 to 2^53; write INPUT@BATCH, such as "
                              "small.reprise@8",
                              word),
                  kUsage);
    }
    absl::StatusOr<Run> run = RunOf(split->first, split->second);
    if (!run.ok()) return Fail(run.status(), kBadInput);
    runs.push_back(*std::move(run));
  }
  const auto other = [&](const Run& run) { return run.batch != runs[0].batch; };
  if (std::ranges::none_of(runs, other)) return Fail("fit needs inputs of two different batches", kUsage);

  const Result result = ResultOf(std::move(runs));
  int exit_status = kFine;
  if (!(result.live.line.slope > 0)) {
    Say("the live peak does not grow with the batch: nothing says which is the largest");
    exit_status = kNegative;
  } else if (options.capacity && LargestBatch(result.live, LiveAlone(), *options.capacity).expected == 0) {
    Say(fmt::format("does not fit: not even a batch of 1 has room in {} bytes", options.capacity->count()));
    exit_status = kDoesNotFit;
  }
  exit_status =
      Finish(options.json ? ResultJson(result, options.capacity) : ResultText(result, options.capacity),
             exit_status);
  if (!options.json) SayNext(fmt::format("compare {}", ShellQuoted(result.runs.back().input.name)));
  return exit_status;
}

}  // namespace

void AddFit(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("fit", "Work out the largest batch that fits, from two others");
  const auto options = std::make_shared<FitOptions>();
  command
      ->add_option("INPUT@BATCH", options->inputs,
                   "Traces, event CSVs or snapshots of one job, each with the samples in its batch")
      ->required()
      ->expected(2, 1000);
  AddSizeOption(*command, "--capacity", options->capacity,
                "Say what the largest batch within that much memory is; status 4 if not even 1 fits");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "The live peak is taken to be a line of the batch. `expected` is by the line through the inputs and "
      "by\n"
      "the share that an allocator reserved beside the live bytes at the largest of them. `at least` and\n"
      "`at most` are by all lines that are as near to the inputs, give or take how far the peaks of their\n"
      "iterations lie apart and what was too small to be recorded, and by the most and the least that was\n"
      "reserved beside at any input, as bytes or as a share, give or take 2 MiB.\n\n"
      "Example:\n  reprise fit small.reprise@8 large.reprise@16 --capacity 80GiB");
  command->callback([options, &exit_status] { exit_status = Fit(*options); });
}

}  // namespace reprise::cli
