// reprise fit: the largest batch that fits, from the same job at other batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fit_model.h"
#include "cli/json_text.h"
#include "cli/options.h"
#include "cli/or_null.h"
#include "cli/quantity.h"
#include "cli/status.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSitesShown = 10;                // for people; all under --json
constexpr int64_t kMostBatch = int64_t{1} << 53;  // different ones differ as doubles too
constexpr double kMovedShare = 0.01;              // of the peak, that is worth a word

struct FitOptions {
  std::vector<std::string> inputs;  // INPUT@BATCH
  std::optional<Bytes> capacity;
  bool json = false;
};

// "A.reprise@8". nullopt: no whole number from 1 to kMostBatch behind the last @.
std::optional<std::pair<std::string, int64_t>> SplitBatch(const std::string& word) {
  const size_t at = word.rfind('@');
  if (at == std::string::npos || at == 0) return std::nullopt;
  const std::optional<int64_t> batch = ParseNumber<int64_t>(word.substr(at + 1));
  if (!batch || *batch <= 0 || *batch > kMostBatch) return std::nullopt;
  return std::pair(word.substr(0, at), *batch);
}

// Errors: those of the machine's limits.
absl::StatusOr<std::vector<Contender>> ContendersFor(const std::string& path, const MeasuredInput& measured) {
  absl::StatusOr<std::vector<Contender>> contenders =
      AllContenders(measured.input.content.trace.events, std::nullopt);
  if (!contenders.ok()) {
    return absl::Status(contenders.status().code(),
                        fmt::format("{}: {}", path, MessageOf(contenders.status())));
  }
  for (const Contender& c : *contenders) {
    if (!c.failed) continue;
    Say(fmt::format("{}: {}: {}; it is left out", path, c.name, kNoRoom));
  }
  return contenders;
}

std::string SignedSize(double bytes) {
  return FormatSignedSize(Bytes(static_cast<int64_t>(std::llround(bytes))));
}

// What is known, and what is not, of the line.
std::string Caveats(const FitModel& model) {
  std::string text;
  if (model.runs.size() == 2) {
    text += "  two inputs are always on a line; a third one shows whether it bends\n";
  } else {
    text += fmt::format("  the inputs are within {} of it\n", SignedSize(model.live.residual));
  }
  for (const BatchRun& run : model.runs) {
    if (const std::string_view why = WhyNotWhole(run.input); !why.empty()) {
      text += fmt::format("  {}: {}; the job's peak may be above its\n", Printable(run.input.name), why);
    }
    const auto& peaks = run.stats.peaks;
    if (!peaks || peaks->rounds < 2) {
      text += fmt::format(
          "  {}: fewer than two iterations are known to be whole, "
          "so how far the peaks of others lie apart is not known\n",
          Printable(run.input.name));
    } else if (Apart(run) > Bytes(0)) {
      text += fmt::format("  {}: the peaks of {} iterations lie {} apart\n", Printable(run.input.name),
                          peaks->rounds, FormatSize(Apart(run)));
    }
    if (const Bytes missing = Unrecorded(run, model.runs.back()); missing > Bytes(0)) {
      text += fmt::format("  {}: up to {} in blocks under {} were not recorded\n", Printable(run.input.name),
                          FormatSize(missing), FormatSize(run.input.content.trace.metadata.threshold));
    }
  }
  const Bytes peak = model.runs[0].stats.live_peak;
  if (static_cast<double>(model.moved.count()) > kMovedShare * static_cast<double>(peak.count())) {
    text += fmt::format(
        "  {} that are live at the peak of batch {} are not at that of batch {}: the peak has moved to "
        "another\n"
        "  moment, from where on it grows faster than this line. Leave the smallest batch out\n",
        FormatSize(model.moved), model.runs.front().batch, model.runs.back().batch);
  }
  return text;
}

std::string SiteRows(const FitModel& model) {
  if (model.sites.empty()) return "";
  std::string text = "    a sample         fixed  site at the peak\n";
  for (size_t i = 0; i < std::min(kSitesShown, model.sites.size()); ++i) {
    const SiteGrowth& site = model.sites[i];
    text += fmt::format("{:>12}  {:>12}  {}\n", SignedSize(site.line.slope), SignedSize(site.line.at_zero),
                        Printable(site.label));
  }
  if (model.sites.size() > kSitesShown) {
    text += fmt::format("  and {} more, under --json\n", model.sites.size() - kSitesShown);
  }
  return text;
}

std::string BatchCell(const std::optional<int64_t>& batch) {
  return batch ? fmt::format("{}", *batch) : "no end";
}

std::string CapacityRows(const FitModel& model, Bytes capacity) {
  std::string text = fmt::format("largest batch within {}\n", FormatSize(capacity));
  text += fmt::format("  {:<17}{:>8}  {:>10}  {:>8}  {}\n", "", "cautious", "expected", "at most",
                      "reserved / live");
  for (const Overhead& overhead : AllOf(model)) {
    const Largest largest = LargestBatch(model.live, overhead, capacity);
    const auto [least, most] = RatiosOf(overhead);
    text += fmt::format("  {:<17}{:>8}  {:>10}  {:>8}  {:.3f} to {:.3f}\n", overhead.name,
                        BatchCell(largest.cautious), BatchCell(largest.expected), BatchCell(largest.most),
                        least, most);
  }
  text +=
      "  at most is by the live bytes alone; what is reserved beside them jumps with the batch, so cautious "
      "and\n"
      "  expected are estimates: try the batch\n";
  return text;
}

std::string ResultText(const FitModel& model, const std::optional<Bytes>& capacity) {
  std::string text = "     batch     live peak\n";
  for (const BatchRun& run : model.runs) {
    text += fmt::format("{:>10}  {:>12}  {}\n", run.batch, FormatSize(run.stats.live_peak),
                        Printable(run.input.name));
  }
  text += fmt::format("live peak = {} + {} a sample\n", SignedSize(model.live.line.at_zero),
                      SignedSize(model.live.line.slope));
  text += Caveats(model) + SiteRows(model);
  return capacity ? text + CapacityRows(model, *capacity) : text;
}

std::string ResultJson(const FitModel& model, const std::optional<Bytes>& capacity) {
  Json json = {{"inputs", Json::array()},
               {"live_peak",
                {{"fixed", model.live.line.at_zero},
                 {"per_sample", model.live.line.slope},
                 {"residual", model.live.residual}}},
               {"moved", model.moved.count()},
               {"capacity", capacity ? Json(capacity->count()) : Json(nullptr)},
               {"largest_batch", Json::array()},
               {"sites", Json::array()}};
  for (const BatchRun& run : model.runs) {
    json["inputs"].push_back({{"input", run.input.name},
                              {"batch", run.batch},
                              {"live_peak", run.stats.live_peak.count()},
                              {"error", LivePeak(run, model.runs.back()).error}});
  }
  for (const Overhead& overhead : AllOf(model)) {
    const auto [least, most] = RatiosOf(overhead);
    Json row = {{"name", overhead.name}, {"overhead_least", least}, {"overhead_most", most}};
    if (capacity) {
      const Largest largest = LargestBatch(model.live, overhead, *capacity);
      row["cautious"] = OrNull(largest.cautious);
      row["expected"] = OrNull(largest.expected);
      row["most"] = OrNull(largest.most);
    }
    json["largest_batch"].push_back(std::move(row));
  }
  for (const SiteGrowth& site : model.sites) {
    json["sites"].push_back({{"label", site.label},
                             {"fixed", site.line.at_zero},
                             {"per_sample", site.line.slope},
                             {"at_smallest", site.at_smallest.count()},
                             {"at_largest", site.at_largest.count()}});
  }
  return JsonText(json);
}

// Whether any of the allocators has room for a batch of 1.
bool HasRoomForOne(const FitModel& model, Bytes capacity) {
  const auto has = [&](const Overhead& overhead) {
    return LargestBatch(model.live, overhead, capacity).expected != 0;
  };
  return has(LiveAlone(model)) && (model.overheads.empty() || std::ranges::any_of(model.overheads, has));
}

int Fit(const FitOptions& options) {
  std::vector<BatchRun> runs;
  std::pair<int64_t, std::string> largest;  // batch, and the input as it was named
  for (const std::string& word : options.inputs) {
    const auto split = SplitBatch(word);
    if (!split) {
      return Fail(fmt::format("\"{}\" names no batch from 1 to 2^53; write INPUT@BATCH, such as "
                              "small.reprise@8",
                              word),
                  kUsage);
    }
    const auto& [path, batch] = *split;
    absl::StatusOr<MeasuredInput> measured = Measured(LoadEvents(path, "fit"));
    if (!measured.ok()) return Fail(measured.status(), kBadInput);
    absl::StatusOr<std::vector<Contender>> contenders = ContendersFor(path, *measured);
    if (!contenders.ok()) return Fail(contenders.status(), kUsage);
    if (batch >= largest.first) largest = {batch, path};
    // All is known of it, and the next one is as large.
    measured->input.content.trace.events = std::vector<profiler::Event>();
    runs.push_back({*std::move(measured), batch, *std::move(contenders)});
  }
  const auto other = [&](const BatchRun& run) { return run.batch != runs[0].batch; };
  if (std::ranges::none_of(runs, other)) return Fail("fit needs inputs of two different batches", kUsage);

  const FitModel model = ModelOf(std::move(runs));
  int exit_status = kFine;
  if (options.capacity && !HasRoomForOne(model, *options.capacity)) {
    Say(fmt::format("does not fit: not even a batch of 1 has room in {} bytes", options.capacity->count()));
    exit_status = kDoesNotFit;
  } else if (!(model.live.line.slope > 0)) {
    Say("the live peak does not grow with the batch: nothing says which is the largest");
    exit_status = kNegative;
  }
  exit_status = Finish(
      options.json ? ResultJson(model, options.capacity) : ResultText(model, options.capacity), exit_status);
  if (!options.json) SayNextOf("compare", largest.second);
  return exit_status;
}

}  // namespace

void AddFit(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("fit", "Work out the largest batch that fits, from two others");
  const auto options = std::make_shared<FitOptions>();
  command
      ->add_option("INPUT@BATCH", options->inputs,
                   "Traces, event CSVs or snapshots of one job, each with the samples in its batch; - for "
                   "standard input")
      ->required()
      ->expected(-2);  // at least
  AddSizeOption(*command, "--capacity", options->capacity,
                "Say what the largest batch within that much memory is; status 4 if not even 1 fits");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "The live peak is taken to be a line of the batch. `at most` is by all lines that are as near to the "
      "inputs,\n"
      "give or take how far the peaks of their iterations lie apart and what was too small to be recorded: "
      "no\n"
      "allocator does without what is live. What one reserves beside that jumps with the batch, so the "
      "others are\n"
      "estimates. `expected` is by the line through the inputs and by the share reserved beside the live "
      "bytes at\n"
      "the largest. `cautious` is by the worst of those lines and by twice what was reserved beside at any "
      "input, as\n"
      "bytes or as a share, and as much more as rounding adds to one request. None is below the batch of an "
      "input\n"
      "that fits. Try the batch before relying on it.\n\n"
      "Example:\n  reprise fit small.reprise@8 large.reprise@16 --capacity 80GiB");
  command->callback([options, &exit_status] { exit_status = Fit(*options); });
}

}  // namespace reprise::cli
