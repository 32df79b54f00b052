// reprise merge: the summaries of a job's ranks as one.
#include "cli/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/shell.h"
#include "base/sizes.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_text.h"
#include "cli/or_null.h"
#include "cli/ranks_report.h"
#include "cli/status.h"
#include "replay/core/summary.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using replay::JobRanks;
using replay::ProcessSummary;

constexpr size_t kMostNamed = 100;  // of ranks in one line
constexpr int64_t kMostSummaryBytes = int64_t{16} << 20;

// The short name of a host: cluster nodes differ in it.
std::string ShortHost(const std::string& host) { return host.substr(0, host.find('.')); }

std::string RowOf(const ProcessSummary& rank) {
  const bool planned = rank.plans > 0;
  return fmt::format(
      "{:>6}  {:<12} {:>11} {:>11} {:>11} {:>11} {:>8} {:>8} {:>7}\n", rank.launched.rank,
      Printable(ShortHost(rank.host)), FormatSize(rank.live_peak), FormatSize(rank.reserved_peak),
      planned ? FormatSize(rank.lower_bound) : "-", planned ? FormatSize(rank.slab) : "-",
      planned ? fmt::format("{:.1f} %", 100 * rank.planned) : "-", rank.plans_resumed, rank.faults);
}

// "rank 1, 2", of so many.
std::string RanksNamed(const std::vector<int>& named, size_t all) {
  return fmt::format("rank {}{}", fmt::join(named, ", "), all > named.size() ? " and more" : "");
}

// Ranks that have been killed, or still run.
std::string RunningText(const JobRanks& job) {
  std::vector<int> named;
  size_t all = 0;
  double first = 0;
  for (const ProcessSummary& rank : job.ranks) {
    if (!rank.running) continue;
    if (named.size() < kMostNamed) named.push_back(rank.launched.rank);
    first = all++ == 0 ? rank.ended : std::min(first, rank.ended);
  }
  if (all == 0) return "";
  return fmt::format("  not at its end but at {}{}: {}; killed since, ended by _exit, or still running\n",
                     Utc(first), all == 1 ? "" : " or later", RanksNamed(named, all));
}

// A live peak without them looks like what the job needs, and is less.
std::string NotInPeaksText(const JobRanks& job) {
  std::vector<int> ranks;
  int64_t requests = 0;
  for (const ProcessSummary& rank : job.ranks) {
    if (rank.not_in_peaks == 0) continue;
    ranks.push_back(rank.launched.rank);
    requests += rank.not_in_peaks;
  }
  if (ranks.empty()) return "";
  const size_t all = ranks.size();
  ranks.resize(std::min(all, kMostNamed));
  return fmt::format("  left to the real allocator, and not in the peaks: {} requests of {}\n", requests,
                     RanksNamed(ranks, all));
}

// What ranks have to say each for itself: as many lines as there are ranks, at worst.
using Notes = std::vector<std::string>;

std::string FirstOf(const Notes& notes, size_t most) {
  const size_t shown = std::min(most, notes.size());
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += notes[i];
  if (shown < notes.size()) text += fmt::format("  ... {} more of these\n", notes.size() - shown);
  return text;
}

// As the process itself says it at its end.
void NoteOversubscribed(const ProcessSummary& rank, Notes& notes) {
  for (const replay::Oversubscribed& device : rank.oversubscribed) {
    const Bytes needs = device.next.Needs();
    notes.push_back(fmt::format(
        "  rank {}, device {}: {} at most in the host's memory, which is slow; the device gave {}\n"
        "    its plan needs {}: {}\n",
        rank.launched.rank, device.device, FormatSize(device.in_host), FormatSize(device.next.given),
        needs == Bytes(0) ? "an unknown size" : FormatSize(needs), device.next.Verdict()));
  }
}

// By reason: most often it is one for all.
Notes NotesOfRefusals(const JobRanks& job) {
  std::map<std::string_view, std::vector<int>> by_reason;
  for (const ProcessSummary& rank : job.ranks) {
    if (!rank.refused.empty()) by_reason[rank.refused].push_back(rank.launched.rank);
  }
  Notes notes;
  for (auto& [reason, ranks] : by_reason) {
    const size_t all = ranks.size();
    ranks.resize(std::min(all, kMostNamed));
    notes.push_back(
        fmt::format("  {}: plans found, and not used: {}\n", RanksNamed(ranks, all), Printable(reason)));
  }
  return notes;
}

std::string JobText(const JobRanks& job, size_t most) {
  std::string text = fmt::format("{}: summaries of {} of {} ranks\n", Printable(NameOf(job)),
                                 job.ranks.size(), job.world_size);
  text += fmt::format("{:>6}  {:<12} {:>11} {:>11} {:>11} {:>11} {:>8} {:>8} {:>7}\n", "rank", "host",
                      "live peak", "reserved", "bound", "slab", "planned", "resumed", "faults");
  const size_t shown = std::min(most, job.ranks.size());
  for (size_t i = 0; i < shown; ++i) text += RowOf(job.ranks[i]);
  if (shown < job.ranks.size()) text += fmt::format("{:>6}  {} more\n", "...", job.ranks.size() - shown);
  const bool planned = std::ranges::any_of(job.ranks, [](const auto& rank) { return rank.plans > 0; });
  text +=
      fmt::format("{:>6}  {:<12} {:>11} {:>11} {:>11} {:>11} {:>26}\n", "sum", "", FormatSize(job.live_peak),
                  FormatSize(job.reserved_peak), planned ? FormatSize(job.lower_bound) : "-",
                  planned ? FormatSize(job.slab) : "-", job.faults);
  const ProcessSummary& largest = job.ranks[job.largest];
  if (job.ranks.size() > 1) {
    text += fmt::format("  largest live peak: rank {} on {}, {}\n", largest.launched.rank,
                        Printable(ShortHost(largest.host)), LargestText(job));
  }
  if (!job.further.empty()) {
    text += fmt::format("  further processes, not in the sums: {}\n", job.further.size());
  }
  if (job.missing_count > 0) {
    text +=
        fmt::format("  no summary of {}\n", RanksNamed(job.missing, static_cast<size_t>(job.missing_count)));
  }
  text += RunningText(job);
  text += NotInPeaksText(job);
  Notes oversubscribed;
  for (const ProcessSummary& rank : job.ranks) NoteOversubscribed(rank, oversubscribed);
  return text + FirstOf(oversubscribed, most) + FirstOf(NotesOfRefusals(job), most);
}

Json ProcessJson(const ProcessSummary& process) {
  Json oversubscribed = Json::array();
  for (const replay::Oversubscribed& device : process.oversubscribed) {
    oversubscribed.push_back({{"device", device.device},
                              {"in_host_peak", device.in_host.count()},
                              {"on_device_full", device.next.given.count()},
                              {"needs", device.next.Needs().count()}});
  }
  return {{"rank", process.launched.rank},
          {"local_rank", process.launched.local_rank},
          {"launcher", process.launched.launcher},
          {"host", process.host},
          {"pid", process.pid},
          {"file", process.file},
          {"started", process.started},
          {"ended", process.ended},
          {"running", process.running},
          {"complete", process.complete},
          {"live_peak", process.live_peak.count()},
          {"reserved_peak", process.reserved_peak.count()},
          {"lower_bound", process.lower_bound.count()},
          {"slab", process.slab.count()},
          {"not_in_peaks", process.not_in_peaks},
          {"planned_bytes_after_plan", process.planned},
          {"plans", process.plans},
          {"plans_resumed", process.plans_resumed},
          {"first_planned_request", process.first_planned_request},
          {"plans_solved_for_ranks", process.plans_solved_for_ranks},
          {"plans_taken_from_ranks", process.plans_taken_from_ranks},
          {"plans_refused", process.refused},
          {"oversubscribed", std::move(oversubscribed)},
          {"faults", process.faults}};
}

Json JobJson(const JobRanks& job) {
  Json ranks = Json::array();
  for (const ProcessSummary& rank : job.ranks) ranks.push_back(ProcessJson(rank));
  Json further = Json::array();
  for (const ProcessSummary& process : job.further) further.push_back(ProcessJson(process));
  return {{"job", job.job},
          {"step", job.step},
          {"restart", job.restart},
          {"run", job.run},
          {"started", job.started},
          {"world_size", job.world_size},
          {"live_peak", job.live_peak.count()},
          {"reserved_peak", job.reserved_peak.count()},
          {"lower_bound", job.lower_bound.count()},
          {"slab", job.slab.count()},
          {"faults", job.faults},
          {"median_live_peak", job.median_live_peak.count()},
          {"largest_rank", job.ranks.empty() ? Json() : Json(job.ranks[job.largest].launched.rank)},
          {"largest_over_median", OrNull(job.LargestOverMedian())},
          {"missing", job.missing},
          {"missing_count", job.missing_count},
          {"ranks", std::move(ranks)},
          {"further", std::move(further)}};
}

// What `report` takes: folders that are there, each once.
std::vector<std::string> FoldersOf(const std::vector<std::string>& inputs) {
  std::vector<std::string> folders;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::exists(input, error)) continue;
    const fs::path folder = fs::is_directory(input, error) ? fs::path(input) : fs::path(input).parent_path();
    const std::string name = folder.empty() ? "." : folder.string();
    if (std::ranges::find(folders, name) == folders.end()) folders.push_back(name);
  }
  return folders;
}

bool HasTrace(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> traces = TracesIn(folder);
  return traces.ok() && !MainTrace(*traces).empty();
}

// Names the page on all of this where there can be one: on a job's ranks, or on a trace in the one folder.
void SayNextReport(const std::vector<std::string>& inputs, const MergedSummaries& merged,
                   const FilesBelow& files) {
  std::vector<std::string> folders = FoldersOf(inputs);
  if (!HasRanks(merged, files) && (folders.size() != 1 || !HasTrace(folders[0]))) return;
  std::ranges::transform(folders, folders.begin(), QuotedFile);
  SayNext(fmt::format("report {}", fmt::join(folders, " ")));
}

int Merge(const std::vector<std::string>& inputs, bool json) {
  const FilesBelow files = FilesOfRanks(inputs);
  MergedSummaries merged = MergeBelow(files);
  for (const std::string& line : merged.errors) Say(line);
  if (merged.jobs.empty() && merged.errors.empty()) {
    const int status = Fail(fmt::format("no summary*.json in {}", fmt::join(inputs, ", ")), kBadInput);
    SayNextReport(inputs, merged, files);  // killed in their first second, or still in it
    return status;
  }
  const bool missing = AnyRunning(merged) || std::ranges::any_of(merged.jobs, [](const JobRanks& job) {
                         return job.missing_count > 0;
                       });
  const std::string text = json ? MergedJson(merged) : MergedText(merged, std::numeric_limits<size_t>::max());
  const int status = Finish(text, !merged.errors.empty() ? kBadInput : missing ? kNegative : kFine);
  if (!json && !merged.jobs.empty()) SayNextReport(inputs, merged, files);
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadSummaryFile(const std::string& file) {
  return ReadRegularFile(file, kMostSummaryBytes);
}

absl::StatusOr<ProcessSummary> ReadSummary(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadSummaryFile(file);
  if (!text.ok()) return text.status();
  return replay::ParseSummary(*text, file);
}

MergedSummaries MergeSummaries(const std::vector<std::string>& files) {
  MergedSummaries merged;
  std::vector<ProcessSummary> processes;
  for (const std::string& file : files) {
    absl::StatusOr<ProcessSummary> process = ReadSummary(file);
    if (process.ok())
      processes.push_back(*std::move(process));
    else
      merged.errors.push_back(MessageOf(process.status()));
  }
  merged.files = processes.size();
  merged.jobs = replay::ByJob(std::move(processes));
  return merged;
}

MergedSummaries MergeBelow(const FilesBelow& files) {
  MergedSummaries merged = MergeSummaries(SummariesOf(files));
  merged.errors.insert(merged.errors.end(), files.errors.begin(), files.errors.end());
  return merged;
}

std::string LargestText(const JobRanks& job) {
  const std::optional<double> times = job.LargestOverMedian();
  return fmt::format("{}, {} the median of {}", FormatSize(job.ranks[job.largest].live_peak),
                     times ? fmt::format("{:.2f} times", *times) : "above", FormatSize(job.median_live_peak));
}

std::string NameOf(const JobRanks& job) {
  std::string name = job.job == "0" ? "the job" : fmt::format("job {}", job.job);
  if (job.step != "0") name += fmt::format(".{}", job.step);
  if (job.restart > 0) name += fmt::format(", restart {}", job.restart);
  if (job.run > 0) name += fmt::format(", run {}, started {}", job.run, Utc(job.started));
  return name;
}

std::string MergedJson(const MergedSummaries& merged) {
  Json jobs = Json::array();
  for (const JobRanks& job : merged.jobs) jobs.push_back(JobJson(job));
  const Json json = {{"files", merged.files}, {"errors", merged.errors}, {"jobs", std::move(jobs)}};
  return JsonText(json);
}

bool HasRanks(const MergedSummaries& merged) {
  return std::any_of(merged.jobs.begin(), merged.jobs.end(), [](const JobRanks& job) {
    return !job.ranks.empty() && job.ranks.front().launched.OneOfMany();
  });
}

bool AnyRunning(const MergedSummaries& merged) {
  return std::ranges::any_of(merged.jobs, [](const JobRanks& job) {
    return std::ranges::any_of(job.ranks, &ProcessSummary::running);
  });
}

bool AnyEnded(const MergedSummaries& merged) {
  return std::ranges::any_of(merged.jobs, [](const JobRanks& job) {
    const auto any = [](const std::vector<ProcessSummary>& processes) {
      return !std::ranges::all_of(processes, &ProcessSummary::running);
    };
    return any(job.ranks) || any(job.further);
  });
}

std::string MergedText(const MergedSummaries& merged, size_t most) {
  const size_t shown = std::min(most, merged.jobs.size());
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += JobText(merged.jobs[i], most);
  if (shown < merged.jobs.size())
    text += fmt::format("... {} more steps or runs\n", merged.jobs.size() - shown);
  return text;
}

void AddMerge(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("merge", "Put the summaries of a job's ranks together, and name the outlier");
  struct Options {
    std::vector<std::string> inputs;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  command
      ->add_option("DIR", options->inputs,
                   "Folders with the summary*.json of ranks, at any depth, or single summaries")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Status 1: ranks of the job have left no summary, or none of their end. 3: a file cannot be read\n"
      "or is no summary; the others are shown.\n\nExample:\n  reprise merge reprise-out");
  command->callback([options, &exit_status] { exit_status = Merge(options->inputs, options->json); });
}

}  // namespace reprise::cli
