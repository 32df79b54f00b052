#include "cli/run_ending.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/shell.h"
#include "cli/console.h"
#include "cli/frameworks.h"
#include "cli/job_summary.h"
#include "cli/memory_limits.h"
#include "cli/merge.h"
#include "cli/quantity.h"
#include "cli/rank_files.h"
#include "cli/ranks_report.h"
#include "cli/report.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// The files by name while they are few.
std::string Listed(std::vector<std::string> summaries, const std::vector<std::string>& traces) {
  constexpr size_t kFew = 4;
  if (summaries.size() + traces.size() > kFew) {
    return fmt::format("summaries {}, traces {}", summaries.size(), traces.size());
  }
  summaries.insert(summaries.end(), traces.begin(), traces.end());
  return fmt::format("{}", fmt::join(summaries, ", "));
}

// What sbatch's --export leaves of a batch script's variables for the tasks of its srun; nullptr: all.
const char* ExportedAlone() {
  const char* const exported = getenv("SLURM_EXPORT_ENV");
  if (exported == nullptr) return nullptr;
  const std::vector<std::string> words = absl::StrSplit(exported, ',');
  return std::ranges::find(words, "ALL") == words.end() ? exported : nullptr;
}

std::string WhyNothingCaught(bool host) {
  if (const char* const exported = ExportedAlone(); exported != nullptr) {
    return fmt::format(
        "srun hands on no other variables than sbatch's --export={} said, so none of ours; "
        "'unset SLURM_EXPORT_ENV' in the batch script lets it",
        Printable(exported));
  }
  if (!host) return "no process asked the CUDA driver for memory, or none that the library was loaded into";
  for (const MemoryLimit& limit : MemoryLimits()) {
    if (limit.bytes < Bytes(0)) continue;
    return fmt::format("nothing is served where the {} is limited, here to {}; '{}' lifts it", limit.of,
                       FormatSize(limit.bytes), limit.lifted_by);
  }
  return "a static binary, a program of another C library (musl), with an allocator of its own or under a "
         "sanitizer, one with more rights than its caller (setuid) or without our variables (env -i, "
         "srun --export=NONE), no aligned allocation above the threshold, or none yet of a process that "
         "still runs";
}

// An errno; 0: a folder that is not there can be made. Tried too.
int WhyNotMade(const std::string& folder) {
  std::error_code error;
  fs::path first = fs::absolute(folder, error).lexically_normal();
  while (first.has_relative_path() && !fs::exists(first.parent_path(), error)) first = first.parent_path();
  if (mkdir(first.c_str(), 0700) == 0) return rmdir(first.c_str()) == 0 ? 0 : errno;
  const int why = errno;
  // Somebody may have made it meanwhile. What is there and is none is a link to nothing.
  return why == EEXIST && fs::is_directory(first, error) ? 0 : why;
}

void SayNothingCaught(bool host, const OutputFolder& folder) {
  const int error = WhyNotWritable(folder.path);
  const int unmade = error == ENOENT ? WhyNotMade(folder.path) : 0;
  if (error != 0 && error != ENOENT) {
    Say(fmt::format("no files came: {} cannot be written to ({})", folder.path, strerror(error)));
  } else if (unmade != 0) {
    Say(fmt::format("no files came: {} cannot be made ({})", folder.path, strerror(unmade)));
  } else {
    Say(fmt::format("no process left a summary: nothing was caught ({})", WhyNothingCaught(host)));
  }
  SayNext("doctor");
}

void SayIfOnlySegments(const OutputFolder& folder, const std::vector<std::string>& summaries) {
  for (const std::string& summary : summaries) {
    const absl::StatusOr<std::string> json = ReadFile(folder.path + "/" + summary);
    if (!json.ok() || !SawOnlySegments(*json)) continue;
    for (const std::string& line : SegmentsAdvice()) Say(line);
    return;
  }
}

// Of a job that failed by itself: whoever ends one from outside knows why.
void SayIfOursMayBeWhy(const RunOptions& options, const ChildEnd& end) {
  const bool ended_from_outside =
      end.signal == SIGINT || end.signal == SIGTERM || end.signal == SIGHUP || end.signal == SIGKILL;
  if (options.host || ended_from_outside || (end.exit_status == 0 && end.signal == 0)) return;
  if (const std::string line = WhatOursMayCost(); !line.empty()) Say(line);
}

std::vector<std::string> PathsOf(const OutputFolder& folder, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) paths.push_back(folder.path + "/" + name);
  return paths;
}

// A page on the ranks of this run, or on the main one of its traces. That it cannot be made is no fault of the
// job's.
void WritePage(const OutputFolder& folder, const std::vector<std::string>& summaries,
               const std::vector<std::string>& traces) {
  const std::vector<std::string> trace_paths = PathsOf(folder, traces);
  std::vector<std::string> paths = PathsOf(folder, summaries);
  paths.insert(paths.end(), trace_paths.begin(), trace_paths.end());
  const FilesBelow files = FilesOfRanks(paths);
  MergedSummaries merged = MergeBelow(files);
  absl::Status status;
  if (HasRanks(merged, files)) {
    status = WriteRanksReport(std::move(merged), files, {.input = folder.path, .output = PagePath(folder)})
                 .status();
  } else if (const std::string main = MainTrace(trace_paths); main.empty()) {
    status = absl::NotFoundError("there is no trace to report on");
  } else {
    const absl::StatusOr<Report> report = MakeReport({.input = main, .output = PagePath(folder)});
    status = report.ok() ? WriteReport(*report) : report.status();
  }
  if (!status.ok()) Say(fmt::format("no report: {}", MessageOf(status)));
}

std::string WhyNotOfItsEnd(const MergedSummaries& merged, const ChildEnd& end) {
  if (end.signal != 0) return "the job was ended by a signal";
  const bool own = std::ranges::any_of(merged.jobs, [&](const replay::JobRanks& job) {
    return std::ranges::any_of(job.ranks,
                               [&](const auto& each) { return each.running && each.pid == end.pid; });
  });
  if (own) {
    return fmt::format(
        "the job ended with status {} and ran no exit handlers, as _exit does not, or could not write one",
        end.exit_status);
  }
  return "a process of the job was ended in a way that runs no exit handlers, still runs, or could not write "
         "one";
}

// For a job that could not say it itself: how it was before it was killed, and what it has left. One that ended
// well and of which a process has said so lost a helper at most; of ranks their table says which ones. `none`:
// it has left no summary at all.
void SayInItsPlace(const OutputFolder& folder, bool none, const MergedSummaries& merged,
                   const ChildEnd& end) {
  const bool ended_well = end.signal == 0 && end.exit_status == 0;
  if (!none && (!AnyRunning(merged) || (ended_well && AnyEnded(merged)))) return;
  const std::string why = WhyNotOfItsEnd(merged, end);
  if (none) {
    Say(fmt::format("no summary: {}; the traces hold what was recorded, up to the last complete block", why));
  } else if (!HasRanks(merged)) {
    Say(fmt::format("no summary of its end: {}; this is how it was some time before", why));
    SayMerged(merged);
  }
  const std::vector<std::string> plans = NewFiles(folder, IsPlans);
  if (plans.empty()) return;
  Say(fmt::format("plans for the next run: {}{}", PathsOf(folder, plans).front(),
                  plans.size() == 1 ? "" : fmt::format(" and {} more", plans.size() - 1)));
}

// Where folders are that processes name by a pattern.
std::string FolderAbovePattern(const std::string& pattern) {
  const std::string above = fs::path(pattern.substr(0, pattern.find('%'))).parent_path().string();
  return above.empty() ? "." : above;
}

// Where each process names its folder by itself.
void SayFilesBelow(const RunOptions& options, const OutputFolder& folder, std::string_view no_report) {
  const std::string above = FolderAbovePattern(NamedPattern(options));
  Say(fmt::format("files are below {}, in folders that each process names by {}", above, folder.pattern));
  if (options.report) Say(fmt::format("no report: {}", no_report));
  SayNext(fmt::format("merge {}", QuotedFile(above)));
}

// One of several ranks: the others may still be running. One of them says where the files are, unless whoever
// started them all will.
void SayAsRank(const RunOptions& options, const OutputFolder& folder, const ChildEnd& end) {
  constexpr std::string_view kNoReport = "other ranks may still be running";
  if (LaunchedHere().rank != 0 || getenv("REPRISE_RUN") != nullptr || folder.pattern.empty()) return;
  SayIfOursMayBeWhy(options, end);
  if (folder.path.empty()) {
    SayFilesBelow(options, folder, kNoReport);
    return;
  }
  if (WhyNotWritable(folder.path) != 0) {  // this rank cannot have left any there, or none has
    SayNothingCaught(options.host, folder);
    return;
  }
  Say(fmt::format("files of all ranks are in {}", folder.path));
  if (options.report) Say(fmt::format("no report: {}", kNoReport));
  SayNext(fmt::format("{} {}", options.report ? "report" : "merge", QuotedFile(folder.path)));
}

}  // namespace

void SayWhatCame(const RunOptions& options, const OutputFolder& folder, const ChildEnd& end) {
  if (LaunchedHere().OneOfMany()) {
    SayAsRank(options, folder, end);
    return;
  }
  if (folder.pattern.empty()) {
    SayNext("doctor");
    return;
  }
  if (folder.path.empty()) {
    SayFilesBelow(options, folder, "which folders they are in, only the job's processes know");
    return;
  }
  const std::vector<std::string> summaries = NewFiles(folder, IsSummary);
  const std::vector<std::string> traces = NewFiles(folder, IsTrace);
  if (summaries.empty() && traces.empty()) {
    SayNothingCaught(options.host, folder);
    return;
  }
  const MergedSummaries merged = MergeSummaries(PathsOf(folder, summaries));
  SayInItsPlace(folder, summaries.empty(), merged, end);
  Say(fmt::format("in {}: {}", folder.path, Listed(summaries, traces)));
  SayIfOnlySegments(folder, summaries);
  SayIfOursMayBeWhy(options, end);
  if (options.report && !DoUnlessEnded([&] { WritePage(folder, summaries, traces); }))
    Say("no report: a signal has ended it");
  if (SayRanks(folder.path, merged)) return;
  if (HasRanks(merged, FilesOfRanks(PathsOf(folder, traces)))) {
    SayNext(fmt::format("report {}", QuotedFile(folder.path)));
    return;
  }
  const std::string main = MainTrace(PathsOf(folder, traces));
  SayNext(main.empty() ? "doctor" : fmt::format("stats {}", QuotedFile(main)));
}

}  // namespace reprise::cli
