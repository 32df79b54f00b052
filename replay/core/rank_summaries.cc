#include "replay/core/rank_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "replay/core/interim_summary.h"
#include "replay/json_fields.h"

namespace reprise::replay {
namespace {

using nlohmann::json;

constexpr size_t kMostMissingNamed = 100;
constexpr int kMostDepth = 100;  // of nesting: whoever walks or writes JSON does so by recursion

// More than any process can hold or count, and little enough for a few of them to be added.
constexpr int64_t kMost = int64_t{1} << 60;
constexpr int kMostNumber = std::numeric_limits<int>::max();
constexpr size_t kMostDevices = 1024;
constexpr double kYear9999 = 253402300799;  // seconds since 1970

// Files may say anything, and any number of them may be added up.
void Add(int64_t more, int64_t& sum) { sum = std::min(kMost, sum + more); }
void Add(Bytes more, Bytes& sum) { sum = std::min(Bytes(kMost), sum + more); }

// What earlier versions did not write is nothing.
int64_t Count(JsonFields& fields, const char* name) { return fields.NumberOr(name, 0, 0, kMost); }
Bytes Size(JsonFields& fields, const char* name) { return Bytes(Count(fields, name)); }
int Number(JsonFields& fields, const char* name, int otherwise, int least, int most) {
  return static_cast<int>(fields.NumberOr(name, otherwise, least, most));
}

// What stands once for the host, and once for each device. `not_in_peaks` is the counter of what its peaks leave out.
void ReadPart(JsonFields& part, std::initializer_list<const char*> not_in_peaks, ProcessSummary& process) {
  const bool complete = part.TruthOr("complete", true);
  process.complete = process.complete && complete;
  Add(complete ? 0 : 1, process.faults);
  Add(Count(part, "unknown_frees"), process.faults);
  Add(Count(part, "trace_dropped"), process.faults);
  // A limit is what the user has asked for.
  const bool failed = !part.TextOr("trace_stopped", "").empty() && !part.TruthOr("trace_full", false);
  Add(failed ? 1 : 0, process.faults);
  const Bytes live_peak = Size(part, "live_peak");
  Add(live_peak, process.live_peak);
  if (const Bytes in_host = Size(part, "in_host_peak"); in_host > Bytes(0)) {
    process.oversubscribed.push_back({.device = Number(part, "device", 0, 0, kMostNumber),
                                      .in_host = in_host,
                                      .next = {.plan_needs = Size(part, "plan_needs"),
                                               .live_peak = live_peak,
                                               .given = Size(part, "on_device_full")}});
  }
  Add(Size(part, "reserved_peak"), process.reserved_peak);
  Add(Size(part, "lower_bound"), process.lower_bound);
  Add(Size(part, "slab"), process.slab);
  for (const char* const name : not_in_peaks) Add(Count(part, name), process.not_in_peaks);
  Add(Count(part, "plans"), process.plans);
  Add(Count(part, "plans_resumed"), process.plans_resumed);
  Add(part.TextOr("not_served", "").empty() ? 0 : 1, process.faults);
  const std::string refused = part.TextOr("plans_refused", "");
  if (process.refused.empty()) process.refused = refused;
}

// Who the process was, and what is told of it once.
void ReadProcess(JsonFields& fields, ProcessSummary& process) {
  Launched& launched = process.launched;
  process.host = fields.TextOr("host", "");
  process.run = fields.TextOr("run", "");
  process.pid = Number(fields, "pid", 0, 0, kMostNumber);
  launched.launcher = fields.TextOr("launcher", launched.launcher);
  launched.rank = Number(fields, "rank", launched.rank, 0, kMostRanks - 1);
  launched.local_rank = Number(fields, "local_rank", launched.local_rank, 0, kMostRanks - 1);
  launched.world_size = Number(fields, "world_size", launched.world_size, 0, kMostRanks);
  launched.job = fields.TextOr("job", "0");  // what one says for whom nobody has numbered
  launched.step = fields.TextOr("step", "0");
  launched.restart = Number(fields, "restart", launched.restart, 0, kMostNumber);
  process.started = fields.RealOr("started", 0, 0, kYear9999);
  process.ended = std::max(process.started, fields.RealOr("ended", 0, 0, kYear9999));
  process.running = fields.TruthOr("running", false);
  process.complete = fields.TruthOr("complete", true);
  process.planned = fields.RealOr("planned_bytes_after_plan", 0, 0, 1);
  process.first_planned_request = Count(fields, "first_planned_request");
  process.plans_solved_for_ranks = Count(fields, "plans_solved_for_ranks");
  process.plans_taken_from_ranks = Count(fields, "plans_taken_from_ranks");
  process.faults = Count(fields, "errors");
}

bool SamePlace(const ProcessSummary& a, const ProcessSummary& b) {
  return a.launched.rank == b.launched.rank;
}

void Count(const std::vector<ProcessSummary>& processes, JobRanks& job) {
  for (const ProcessSummary& each : processes) Add(each.faults, job.faults);
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
    Add(rank.live_peak, job.live_peak);
    Add(rank.reserved_peak, job.reserved_peak);
    Add(rank.lower_bound, job.lower_bound);
    Add(rank.slab, job.slab);
    peaks.push_back(rank.live_peak.count());
    if (rank.live_peak > job.ranks[job.largest].live_peak) job.largest = i;
  }
  if (peaks.empty()) return;
  std::ranges::sort(peaks);
  const int64_t lower = peaks[(peaks.size() - 1) / 2], upper = peaks[peaks.size() / 2];
  job.median_live_peak = Bytes(lower + (upper - lower) / 2);
}

// A process that has become another program goes on as that, which tells its end.
void FindExecuted(std::vector<ProcessSummary>& processes) {
  const auto key = [](const ProcessSummary& each) {
    return std::tuple<std::string_view, int, int>(each.host, each.pid, each.launched.rank);
  };
  std::map<decltype(key(processes.front())), double> last;  // when its last program began
  for (const ProcessSummary& each : processes) {
    double& started = last[key(each)];
    started = std::max(started, each.started);
  }
  for (ProcessSummary& each : processes) each.running = each.running && each.started >= last[key(each)];
}

JobRanks Gather(std::vector<ProcessSummary> processes) {
  FindExecuted(processes);
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

// Until when it ran, as far as is known: of one that went on, until its next summary was due. Where runs have no
// names it may have been killed and the next run have begun before that.
double LastKnown(const ProcessSummary& process) {
  if (!process.running || process.run.empty()) return process.ended;
  const double run_ns = std::min(1e18, 1e9 * (process.ended - process.started));
  return process.ended +
         1e-9 * static_cast<double>(InterimSummary::NsUntilNext(static_cast<int64_t>(run_ns)));
}

// What overlaps in time, in its order.
std::vector<Processes> AtOnce(Processes processes) {
  std::ranges::stable_sort(processes, {}, &ProcessSummary::started);
  std::vector<Processes> together;
  double ended = 0;
  for (ProcessSummary& each : processes) {
    if (together.empty() || each.started > ended) together.emplace_back();
    ended = std::max(ended, LastKnown(each));
    together.back().push_back(std::move(each));
  }
  return together;
}

// A run, or what is known to be of one.
class Run {
 public:
  explicit Run(Processes processes) : processes_(std::move(processes)) {
    started_ = std::ranges::min_element(processes_, {}, &ProcessSummary::started)->started;
    for (const ProcessSummary& each : processes_) {
      ended_ = std::max(ended_, LastKnown(each));
      const Launched& launched = each.launched;
      if (launched.launcher.empty()) continue;
      ranks_.insert({launched.launcher, launched.rank});
      world_size_ = std::max(world_size_, static_cast<size_t>(launched.world_size));
    }
  }

  double started() const { return started_; }
  // As the first of its processes was told it; empty: not at all.
  const std::string& name() const { return processes_.front().run; }

  // Whether ranks of both may be of one job. Each of its hosts may have a name of its own for the job, but
  // then what they have started runs at the same time.
  bool MayBeOneWith(const Run& later) const {
    const bool at_once = !name().empty() && !later.name().empty() && later.started_ <= ended_;
    return (name() == later.name() || at_once) && !ranks_.empty() && !later.ranks_.empty() &&
           std::ranges::none_of(later.ranks_, [&](const auto& rank) { return ranks_.contains(rank); });
  }

  // Of two with the same name that did not run at the same time: whether the second is a part of the first. With a
  // number of the job's it is, but where all of several ranks come again: a number may be given twice. Without one
  // what a script starts one after the other, if there are no ranks.
  bool GoesOnIn(const Run& later, bool numbered) const {
    if (!numbered) return !name().empty() && ranks_.empty() && later.ranks_.empty();
    return ranks_.size() < 2 || ranks_.size() < world_size_ || ranks_ != later.ranks_;
  }

  void Add(Run later) {
    ranks_.merge(later.ranks_);
    world_size_ = std::max(world_size_, later.world_size_);
    ended_ = std::max(ended_, later.ended_);
    std::ranges::move(later.processes_, std::back_inserter(processes_));
  }

  Processes Take() && { return std::move(processes_); }

 private:
  Processes processes_;  // not empty
  std::set<std::pair<std::string, int>> ranks_;
  size_t world_size_ = 0;
  double started_ = 0, ended_ = 0;
};

// By name, and what did not run at the same time apart.
std::vector<Run> Parts(Processes processes, bool numbered) {
  std::map<std::string, Processes> by_name;
  for (ProcessSummary& each : processes) by_name[each.run].push_back(std::move(each));
  std::vector<Run> parts;
  for (auto& [name, all] : by_name) {
    const size_t others = parts.size();
    for (Processes& together : AtOnce(std::move(all))) {
      Run part(std::move(together));
      if (parts.size() > others && parts.back().GoesOnIn(part, numbered)) {
        parts.back().Add(std::move(part));
      } else {
        parts.push_back(std::move(part));
      }
    }
  }
  std::ranges::stable_sort(parts, {}, &Run::started);
  return parts;
}

// Ranks that never speak to each other may run one after the other: they are of one run while none comes again.
Run* HomeOf(const Run& part, std::vector<Run>& runs) {
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (run->MayBeOneWith(part)) return &*run;
    if (run->name() == part.name()) return nullptr;
  }
  return nullptr;
}

std::vector<Run> ByRun(Processes processes, bool numbered) {
  std::vector<Run> runs;
  for (Run& part : Parts(std::move(processes), numbered)) {
    if (Run* const home = HomeOf(part, runs); home != nullptr) {
      home->Add(std::move(part));
    } else {
      runs.push_back(std::move(part));
    }
  }
  return runs;
}

// Whether a process that is no rank may have started one: it was there, on the rank's host, when that began.
bool MayHaveStarted(const ProcessSummary& process, const ProcessSummary& rank) {
  return !rank.launched.launcher.empty() && process.run == rank.run && process.host == rank.host &&
         process.started <= rank.started && rank.started <= LastKnown(process);
}

// torchrun tells a job's number to its ranks alone: what it leaves itself has none.
void NumberLaunchers(Processes& processes) {
  for (ProcessSummary& each : processes) {
    if (!each.launched.launcher.empty() || each.launched.job != "0") continue;
    const auto rank = std::ranges::find_if(
        processes, [&](const ProcessSummary& other) { return MayHaveStarted(each, other); });
    if (rank == processes.end()) continue;
    each.launched.job = rank->launched.job;
    each.launched.step = rank->launched.step;
    each.launched.restart = rank->launched.restart;
  }
}

// Of ranks that ran at the same time.
void EvenRestart(std::span<ProcessSummary* const> at_once) {
  std::map<int, int> by_rank;
  int most = 0;
  for (const ProcessSummary* const each : at_once) {
    const auto [said, added] = by_rank.try_emplace(each->launched.rank, each->launched.restart);
    if (said->second != each->launched.restart)
      return;  // two starts after all: the clocks of their hosts differ
    most = std::max(most, each->launched.restart);
  }
  for (ProcessSummary* const each : at_once) each->launched.restart = most;
}

// torchrun counts on each node for itself how often it has started ranks again: not where it had to only because another
// node did. What ran at the same time is of one start, and that is the highest number that one of its ranks was told.
void EvenRestarts(Processes& processes) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<ProcessSummary*>> jobs;
  for (ProcessSummary& each : processes) {
    const Launched& of = each.launched;
    if (of.launcher.empty() || each.started == 0) continue;
    jobs[{of.job, of.step, of.job == "0" ? each.run : ""}].push_back(&each);
  }
  for (auto& [name, ranks] : jobs) {
    std::ranges::stable_sort(ranks, {}, &ProcessSummary::started);
    for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
      double ended = 0;
      for (end = begin; end < ranks.size() && (end == begin || ranks[end]->started <= ended); ++end)
        ended = std::max(ended, ranks[end]->ended);
      EvenRestart(std::span(ranks).subspan(begin, end - begin));
    }
  }
}

}  // namespace

std::optional<double> JobRanks::LargestOverMedian() const {
  if (ranks.empty() || ranks[largest].live_peak == Bytes(0)) return 1;
  if (median_live_peak == Bytes(0)) return std::nullopt;
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
  if (!summary.is_object() || !summary.contains("live_peak") || !summary.contains("reserved_peak"))
    return wrong("is not the summary of a process");
  ProcessSummary process;
  process.file = file;
  JsonFields top(summary, "the file");
  ReadProcess(top, process);
  const json devices = summary.contains("devices") ? top.Array("devices", kMostDevices) : json::array();
  // With devices the top level repeats one of them, and is no part of its own.
  if (devices.empty()) ReadPart(top, {"passed"}, process);
  for (const json& device : devices) {
    JsonFields part(device, "a device");
    // What was passed there for want of room is known to the engine as long as it lives; these are not.
    ReadPart(part, {"capture_passes", "unrecorded"}, process);
    if (!part.error().empty()) return wrong(part.error());
  }
  if (!top.error().empty()) return wrong(top.error());
  return process;
}

std::vector<JobRanks> ByJob(std::vector<ProcessSummary> processes) {
  EvenRestarts(processes);
  NumberLaunchers(processes);
  // Names that are numbers in their order: step 10 comes behind step 2.
  std::map<std::tuple<size_t, std::string, size_t, std::string, int>, Processes> jobs;
  for (ProcessSummary& each : processes) {
    const Launched& of = each.launched;
    jobs[{of.job.size(), of.job, of.step.size(), of.step, of.restart}].push_back(std::move(each));
  }
  std::vector<JobRanks> gathered;
  for (auto& [name, all] : jobs) {
    std::vector<Run> runs = ByRun(std::move(all), /*numbered=*/std::get<1>(name) != "0");
    for (size_t i = 0; i < runs.size(); ++i) {
      gathered.push_back(Gather(std::move(runs[i]).Take()));
      if (runs.size() > 1) gathered.back().run = static_cast<int>(i) + 1;
    }
  }
  return gathered;
}

}  // namespace reprise::replay
