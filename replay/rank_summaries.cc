#include "replay/rank_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace reprise::replay {
namespace {

using nlohmann::json;

constexpr size_t kMostMissingNamed = 100;
constexpr int kMostDepth = 100;  // of nesting: whoever walks or writes JSON does so by recursion

// The value where it is there and of that type, else what it is by default.
template <typename Value>
void Read(const json& object, const char* name, Value& value) {
  const auto found = object.find(name);
  if (found == object.end()) return;
  if constexpr (std::is_same_v<Value, std::string>) {
    if (found->is_string()) value = found->get<std::string>();
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (found->is_boolean()) value = found->get<bool>();
  } else if (found->is_number()) {
    value = found->get<Value>();
  }
}

Bytes Size(const json& object, const char* name) {
  int64_t bytes = 0;
  Read(object, name, bytes);
  return Bytes(std::max(int64_t{0}, bytes));
}

int64_t Count(const json& object, const char* name) {
  int64_t count = 0;
  Read(object, name, count);
  return std::max(int64_t{0}, count);
}

// Seconds since 1970 up to the year 9999; 0 for anything else.
double Moment(const json& object, const char* name) {
  constexpr double kMost = 253402300799;
  double moment = 0;
  Read(object, name, moment);
  return moment > 0 && moment <= kMost ? moment : 0;
}

// What stands once for the host, and once for each device.
void ReadPart(const json& part, ProcessSummary& process) {
  bool complete = true;
  Read(part, "complete", complete);
  process.complete = process.complete && complete;
  process.faults += (complete ? 0 : 1) + Count(part, "unknown_frees") + Count(part, "trace_dropped");
  process.live_peak += Size(part, "live_peak");
  process.reserved_peak += Size(part, "reserved_peak");
  process.lower_bound += Size(part, "lower_bound");
  process.slab += Size(part, "slab");
  process.plans += Count(part, "plans");
  process.plans_resumed += Count(part, "plans_resumed");
  std::string not_served;
  Read(part, "not_served", not_served);
  process.faults += not_served.empty() ? 0 : 1;
  std::string refused;
  Read(part, "plans_refused", refused);
  if (process.refused.empty()) process.refused = refused;
}

// With devices the top level repeats one of them, and is no part of its own.
std::vector<const json*> PartsOf(const json& summary) {
  std::vector<const json*> parts;
  if (const auto devices = summary.find("devices"); devices != summary.end() && devices->is_array()) {
    for (const json& device : *devices) {
      if (device.is_object()) parts.push_back(&device);
    }
  }
  if (parts.empty()) parts.push_back(&summary);
  return parts;
}

bool SamePlace(const ProcessSummary& a, const ProcessSummary& b) {
  return a.launched.rank == b.launched.rank;
}

void Count(const std::vector<ProcessSummary>& processes, JobRanks& job) {
  for (const ProcessSummary& each : processes) job.faults += each.faults;
}

void FindMissing(JobRanks& job) {
  size_t next = 0;
  for (int rank = 0; rank < job.world_size; ++rank) {
    if (next < job.ranks.size() && job.ranks[next].launched.rank == rank) {
      ++next;
      continue;
    }
    ++job.missing_count;
    if (job.missing.size() < kMostMissingNamed) job.missing.push_back(rank);
  }
}

void Total(JobRanks& job) {
  std::vector<int64_t> peaks;
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const ProcessSummary& rank = job.ranks[i];
    job.live_peak += rank.live_peak;
    job.reserved_peak += rank.reserved_peak;
    job.lower_bound += rank.lower_bound;
    job.slab += rank.slab;
    peaks.push_back(rank.live_peak.count());
    if (rank.live_peak > job.ranks[job.largest].live_peak) job.largest = i;
  }
  if (peaks.empty()) return;
  const auto middle = peaks.begin() + static_cast<std::ptrdiff_t>((peaks.size() - 1) / 2);
  std::nth_element(peaks.begin(), middle, peaks.end());
  job.median_live_peak = Bytes(*middle);
}

JobRanks Gather(std::vector<ProcessSummary> processes) {
  JobRanks job;
  job.job = processes.front().launched.job;
  job.step = processes.front().launched.step;
  job.restart = processes.front().launched.restart;
  job.started = std::ranges::min_element(processes, {}, &ProcessSummary::started)->started;
  Count(processes, job);
  // Where there is no rank at all, what there is stands for one.
  const auto is_rank = [](const ProcessSummary& each) { return !each.launched.launcher.empty(); };
  if (std::any_of(processes.begin(), processes.end(), is_rank)) {
    const auto others = std::stable_partition(processes.begin(), processes.end(), is_rank);
    job.further.assign(std::make_move_iterator(others), std::make_move_iterator(processes.end()));
    processes.erase(others, processes.end());
  }
  std::stable_sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
    if (!SamePlace(a, b)) return a.launched.rank < b.launched.rank;
    return a.live_peak > b.live_peak;
  });
  for (ProcessSummary& each : processes) {
    const bool first = job.ranks.empty() || !SamePlace(job.ranks.back(), each);
    job.world_size = std::max({job.world_size, each.launched.world_size, each.launched.rank + 1});
    (first ? job.ranks : job.further).push_back(std::move(each));
  }
  FindMissing(job);
  Total(job);
  return job;
}

using Processes = std::vector<ProcessSummary>;

// What overlaps in time, in its order.
std::vector<Processes> AtOnce(Processes processes) {
  std::ranges::stable_sort(processes, {}, &ProcessSummary::started);
  std::vector<Processes> together;
  double ended = 0;
  for (ProcessSummary& each : processes) {
    if (together.empty() || each.started > ended) together.emplace_back();
    ended = std::max(ended, each.ended);
    together.back().push_back(std::move(each));
  }
  return together;
}

// Ranks that never speak to each other may run one after the other: they are of one run while none comes
// again.
std::vector<Processes> ByRun(Processes processes) {
  std::vector<Processes> runs;
  std::set<std::pair<std::string, int>> ranks;
  for (Processes& together : AtOnce(std::move(processes))) {
    std::set<std::pair<std::string, int>> here;
    for (const ProcessSummary& each : together) here.insert({each.launched.launcher, each.launched.rank});
    const bool again = std::ranges::any_of(here, [&](const auto& rank) { return ranks.contains(rank); });
    if (runs.empty() || again) {
      runs.emplace_back();
      ranks.clear();
    }
    ranks.merge(here);
    runs.back().insert(runs.back().end(), std::make_move_iterator(together.begin()),
                       std::make_move_iterator(together.end()));
  }
  return runs;
}

}  // namespace

double JobRanks::LargestOverMedian() const {
  if (ranks.empty() || median_live_peak == Bytes(0)) return 1;
  return static_cast<double>(ranks[largest].live_peak.count()) /
         static_cast<double>(median_live_peak.count());
}

absl::StatusOr<ProcessSummary> ParseSummary(std::string_view text, std::string_view file) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file, what));
  };
  bool too_deep = false;
  const auto keep = [&](int depth, json::parse_event_t, const json&) {
    too_deep = too_deep || depth > kMostDepth;
    return !too_deep;
  };
  const json summary = json::parse(text, keep, /*allow_exceptions=*/false);
  if (too_deep) return wrong(fmt::format("is nested more than {} deep, as no summary is", kMostDepth));
  if (summary.is_discarded()) return wrong("is not JSON, or cut short");
  if (!summary.is_object() || !summary.contains("live_peak") || !summary.contains("reserved_peak")) {
    return wrong("is not the summary of a process");
  }
  constexpr int kMostRanks = 1 << 24;
  ProcessSummary process;
  process.file = file;
  Read(summary, "host", process.host);
  Read(summary, "pid", process.pid);
  Read(summary, "launcher", process.launched.launcher);
  Read(summary, "rank", process.launched.rank);
  Read(summary, "local_rank", process.launched.local_rank);
  Read(summary, "world_size", process.launched.world_size);
  Read(summary, "job", process.launched.job);
  Read(summary, "step", process.launched.step);
  Read(summary, "restart", process.launched.restart);
  if (process.launched.rank < 0 || process.launched.rank >= kMostRanks ||
      process.launched.world_size > kMostRanks) {
    return wrong("has a rank that cannot be");
  }
  process.started = Moment(summary, "started");
  process.ended = std::max(process.started, Moment(summary, "ended"));
  Read(summary, "complete", process.complete);
  Read(summary, "planned_bytes_after_plan", process.planned);
  process.first_planned_request = Count(summary, "first_planned_request");
  process.plans_solved_for_ranks = Count(summary, "plans_solved_for_ranks");
  process.plans_taken_from_ranks = Count(summary, "plans_taken_from_ranks");
  process.faults = Count(summary, "errors");
  for (const json* const part : PartsOf(summary)) ReadPart(*part, process);
  return process;
}

std::vector<JobRanks> ByJob(std::vector<ProcessSummary> processes) {
  std::map<std::tuple<std::string, std::string, int>, Processes> jobs;
  for (ProcessSummary& each : processes) {
    auto& job = jobs[{each.launched.job, each.launched.step, each.launched.restart}];
    job.push_back(std::move(each));
  }
  std::vector<JobRanks> gathered;
  for (auto& [name, all] : jobs) {
    const bool numbered = std::get<0>(name) != "0";
    if (numbered) {
      gathered.push_back(Gather(std::move(all)));
      continue;
    }
    std::vector<Processes> runs = ByRun(std::move(all));
    for (size_t i = 0; i < runs.size(); ++i) {
      gathered.push_back(Gather(std::move(runs[i])));
      if (runs.size() > 1) gathered.back().run = static_cast<int>(i) + 1;
    }
  }
  return gathered;
}

}  // namespace reprise::replay
