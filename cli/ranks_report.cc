#include "cli/ranks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "cli/console.h"
#include "cli/rank_traces.h"
#include "cli/report/page_source.h"
#include "cli/report/ranks_page.h"
#include "profiler/trace_reader.h"

namespace reprise::cli {
namespace {

using replay::JobRanks;
using replay::ProcessSummary;

constexpr int kMostMissingNamed = 100;

std::string ParentOf(std::string_view path) { return std::filesystem::path(path).parent_path().string(); }

// A rank that has left no summary, as its trace tells of it.
struct TraceAlone {
  const RankFiles* files;
  std::string folder;
  std::string job, step, run;  // empty: not known
  int64_t world_size;

  bool has_number() const { return !job.empty() && job != "0"; }
};

TraceAlone AloneOf(const RankFiles& files) {
  profiler::TraceMetadata metadata =
      profiler::ReadTraceMetadata(files.traces.front()).value_or(profiler::TraceMetadata{});
  return {.files = &files,
          .folder = ParentOf(files.traces.front()),
          .job = std::move(metadata.job),
          .step = std::move(metadata.step),
          .run = std::move(metadata.run),
          .world_size = metadata.world_size};
}

// Whether it is one of those that the job is missing; `beside`: it lies where others of the job have left their
// summaries. Elsewhere, as each rank or host may have a folder, only what has a number is known again. Several runs of
// the job are told apart by their names; one may have several, a host's each.
bool MayBeOf(const JobRanks& job, const TraceAlone& alone, bool beside) {
  if (alone.files->restart != job.restart || alone.files->rank >= job.world_size) return false;
  if (alone.job.empty()) return beside;
  if (alone.job != job.job || alone.step != job.step || !(beside || alone.has_number())) return false;
  return job.run == 0 ||
         std::ranges::any_of(job.ranks, [&](const ProcessSummary& rank) { return rank.run == alone.run; });
}

// Which files are whose: of each rank those beside its summary; of a rank without one those that name it.
class Assigner {
 public:
  explicit Assigner(const FilesBelow& files) {
    for (const RankFiles& each : files.processes) {
      if (!each.summary.empty()) {
        of_summary_[each.summary] = &each;
      } else if (each.rank >= 0 && !each.traces.empty()) {
        alone_.push_back(AloneOf(each));
      }
    }
    std::ranges::stable_sort(alone_, {}, [](const TraceAlone& each) { return each.files->rank; });
  }

  std::vector<RankFiles> Of(const JobRanks& job) {
    std::vector<RankFiles> files;
    std::set<std::string> folders;
    std::set<int> known;
    for (const ProcessSummary& rank : job.ranks) {
      folders.insert(ParentOf(rank.file));
      known.insert(rank.launched.rank);
      files.push_back(*of_summary_.at(rank.file));
      files.back().rank = rank.launched.rank;
    }
    for (const bool beside : {true, false}) {
      std::erase_if(alone_, [&](const TraceAlone& each) {
        if (folders.contains(each.folder) != beside || known.contains(each.files->rank) ||
            !MayBeOf(job, each, beside))
          return false;
        known.insert(each.files->rank);
        files.push_back(*each.files);
        return true;
      });
    }
    return files;
  }

  // Steps of jobs, or starts of them, of which there are traces alone: ended before any rank could say anything.
  std::vector<std::pair<JobRanks, std::vector<RankFiles>>> TracesAlone(
      const std::vector<JobRanks>& jobs) const {
    std::set<Start> known;
    std::set<std::pair<std::string, int>> known_places;
    for (const JobRanks& job : jobs) {
      for (const ProcessSummary& rank : job.ranks) {
        if (rank.launched.launcher.empty()) continue;  // no rank: a launcher, say, whose ranks those are
        const std::string folder = ParentOf(rank.file);
        known_places.insert({folder, job.restart});
        known.insert({job.job == "0" ? folder : "", job.restart, job.job, job.step});
      }
    }
    std::map<Start, std::pair<JobRanks, std::vector<RankFiles>>> by_start;
    for (const TraceAlone& each : alone_) {
      const bool named = !each.job.empty();
      const int restart = each.files->restart;
      const Start start = {each.has_number() ? "" : each.folder, restart, named ? each.job : "0",
                           named ? each.step : "0"};
      if (named ? known.contains(start) : known_places.contains({each.folder, restart})) continue;
      auto& [job, files] = by_start[start];
      const int rank = each.files->rank;
      if (!files.empty() && files.back().rank == rank) continue;  // a further process of that rank
      files.push_back(*each.files);
      const int64_t said = std::min<int64_t>(each.world_size, replay::kMostRanks);
      job.world_size = std::max({job.world_size, static_cast<int>(said), rank + 1});
    }
    std::vector<std::pair<JobRanks, std::vector<RankFiles>>> alone;
    for (auto& [start, found] : by_start) {
      JobRanks& job = found.first;
      std::tie(std::ignore, job.restart, job.job, job.step) = start;
      job.missing_count = job.world_size;
      for (int rank = 0; rank < std::min(job.world_size, kMostMissingNamed); ++rank)
        job.missing.push_back(rank);
      alone.push_back(std::move(found));
    }
    return alone;
  }

 private:
  // A folder, where the job has no number; how often it had been put back; the job and its step.
  using Start = std::tuple<std::string, int, std::string, std::string>;

  std::map<std::string, const RankFiles*> of_summary_;
  std::vector<TraceAlone> alone_;  // by rank
};

std::vector<std::string> AllOf(const FilesBelow& files) {
  std::vector<std::string> all = SummariesOf(files);
  for (const RankFiles& each : files.processes) all.insert(all.end(), each.traces.begin(), each.traces.end());
  return all;
}

void Redact(MergedSummaries& merged, Redactor& redactor) {
  for (std::string& error : merged.errors) error = "a file cannot be read";
  for (JobRanks& job : merged.jobs) {
    job.job.assign(1, '0');
    for (auto* const processes : {&job.ranks, &job.further}) {
      for (ProcessSummary& each : *processes) {
        each.host = redactor.Host(each.host);
        each.file.clear();
        each.pid = 0;
        if (!each.refused.empty()) each.refused = "plans of an earlier run were refused";
      }
    }
  }
}

}  // namespace

bool HasRanks(const MergedSummaries& merged, const FilesBelow& files) {
  if (HasRanks(merged)) return true;
  return std::ranges::count_if(files.processes, [](const RankFiles& each) {
           return each.rank >= 0 && !each.traces.empty();
         }) > 1;
}

absl::StatusOr<bool> WriteRanksReport(MergedSummaries merged, const FilesBelow& files,
                                      const RanksReportOptions& options) {
  Redactor redactor;
  RankTracesOptions reading;
  reading.end =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(options.seconds));
  if (options.redact) reading.redactor = &redactor;
  Assigner assigner(files);
  std::vector<RankTraces> traces;
  traces.reserve(merged.jobs.size());
  for (const JobRanks& job : merged.jobs) traces.push_back(CompareTraces(assigner.Of(job), reading));
  for (auto& [job, left] : assigner.TracesAlone(merged.jobs)) {
    traces.push_back(CompareTraces(left, reading));
    merged.jobs.push_back(std::move(job));
  }
  if (options.redact) Redact(merged, redactor);
  RanksPageOptions page_options = {.input = options.redact ? "input" : options.input,
                                   .redacted = options.redact,
                                   .capacity = options.capacity,
                                   .created = UtcNow()};
  const absl::StatusOr<std::string> page = RanksPageOf(merged, traces, page_options);
  if (!page.ok()) return page.status();
  bool all_read = true;
  for (const RankTraces& each : traces) {
    for (const std::string& error : each.errors) Say(error);
    all_read = all_read && each.errors.empty();
  }
  if (absl::Status written = WritePage(options.output, *page, AllOf(files)); !written.ok()) return written;
  return all_read;
}

}  // namespace reprise::cli
