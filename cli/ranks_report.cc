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

// Whether a rank that has left a trace alone is one of those that the job is missing. Several runs of it are told
// apart by their names; one may have several, a host's each.
bool MayBeOf(const JobRanks& job, const RankFiles& files) {
  if (files.rank >= job.world_size) return false;
  const absl::StatusOr<profiler::TraceMetadata> metadata = profiler::ReadTraceMetadata(files.traces.front());
  if (!metadata.ok() || metadata->job.empty()) return true;
  if (metadata->job != job.job || metadata->step != job.step) return false;
  return job.run == 0 || std::ranges::any_of(job.ranks, [&](const ProcessSummary& rank) {
           return rank.run == metadata->run;
         });
}

// Which files are whose: of each rank those beside its summary; of a rank without one those that name it.
class Assigner {
 public:
  explicit Assigner(const FilesBelow& files) {
    for (const RankFiles& each : files.processes) {
      if (!each.summary.empty()) {
        of_summary_[each.summary] = &each;
      } else if (each.rank >= 0 && !each.traces.empty()) {
        without_summary_[{ParentOf(each.traces.front()), each.restart}].insert({each.rank, &each});
      }
    }
  }

  std::vector<RankFiles> Of(const JobRanks& job) {
    std::vector<RankFiles> files;
    std::set<std::string> folders;
    for (const ProcessSummary& rank : job.ranks) {
      folders.insert(ParentOf(rank.file));
      files.push_back(*of_summary_.at(rank.file));
      files.back().rank = rank.launched.rank;
    }
    for (const std::string& folder : folders) {
      const auto left = without_summary_.find({folder, job.restart});
      if (left == without_summary_.end()) continue;
      std::erase_if(left->second, [&](const auto& each) {
        const bool missing =
            std::ranges::none_of(files, [&](const RankFiles& known) { return known.rank == each.first; }) &&
            MayBeOf(job, *each.second);
        if (missing) files.push_back(*each.second);
        return missing;
      });
    }
    return files;
  }

  // Steps of jobs, or starts of them, of which there are traces alone: ended before any rank could say anything.
  std::vector<std::pair<JobRanks, std::vector<RankFiles>>> TracesAlone(
      const std::vector<JobRanks>& jobs) const {
    std::set<Start> known;
    std::set<Place> known_places;
    for (const JobRanks& job : jobs) {
      for (const ProcessSummary& rank : job.ranks) {
        const Place place = {ParentOf(rank.file), job.restart};
        known_places.insert(place);
        known.insert({place, job.job, job.step});
      }
    }
    std::map<Start, std::pair<JobRanks, std::vector<RankFiles>>> by_start;
    for (const auto& [place, ranks] : without_summary_) {
      for (const auto& [rank, each] : ranks) {
        const profiler::TraceMetadata metadata =
            profiler::ReadTraceMetadata(each->traces.front()).value_or(profiler::TraceMetadata{});
        const bool named = !metadata.job.empty();
        const Start start = {place, named ? metadata.job : "0", named ? metadata.step : "0"};
        if (named ? known.contains(start) : known_places.contains(place)) continue;
        auto& [job, files] = by_start[start];
        if (!files.empty() && files.back().rank == rank) continue;  // a further process of that rank
        files.push_back(*each);
        const int64_t said = std::min<int64_t>(metadata.world_size, replay::kMostRanks);
        job.world_size = std::max({job.world_size, static_cast<int>(said), rank + 1});
      }
    }
    std::vector<std::pair<JobRanks, std::vector<RankFiles>>> alone;
    for (auto& [start, found] : by_start) {
      JobRanks& job = found.first;
      Place place;
      std::tie(place, job.job, job.step) = start;
      job.restart = place.second;
      job.missing_count = job.world_size;
      for (int rank = 0; rank < std::min(job.world_size, kMostMissingNamed); ++rank)
        job.missing.push_back(rank);
      alone.push_back(std::move(found));
    }
    return alone;
  }

 private:
  using Place = std::pair<std::string, int>;  // a folder, and how often the job had been put back
  using Start = std::tuple<Place, std::string, std::string>;  // with a job and its step

  std::map<std::string, const RankFiles*> of_summary_;
  std::map<Place, std::multimap<int, const RankFiles*>> without_summary_;
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
