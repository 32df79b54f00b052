// The summaries of a job's processes put together: which rank needed what.
//
// Rank: a process that a launcher has started as one of several, with what it started in turn (workers that
// load data have their parent's rank). What a process without a launcher left beside them (torchrun itself)
// is no rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "replay/core/launcher.h"
#include "replay/core/summary.h"

namespace reprise::replay {

// More than any job has; a file may say anything.
inline constexpr int kMostRanks = 1 << 24;

// A device whose memory was not enough: the rest lay in the host's.
struct Oversubscribed {
  int device = 0;
  Bytes in_host;  // at most
  NextAttempt next;
};

// What is kept of one summary.json: a thousand of them stay small. Of a process with several devices sizes
// and counts are sums over them, as what its traces say is; the peaks need not have been at one moment.
struct ProcessSummary {
  std::string file;
  std::string host;
  std::string run;  // of what `reprise run` has started; empty: of nothing, or it does not say
  int pid = 0;
  Launched launched;
  double started = 0;  // seconds since 1970; 0: it does not say
  double ended = 0;
  // It went on when this was written, and has been killed if it does no more. ByJob knows of some that another
  // program has taken their place.
  bool running = false;
  bool complete = true;
  Bytes live_peak;
  Bytes reserved_peak;
  Bytes lower_bound;
  Bytes slab;
  double planned = 0;  // share of the bytes since the first plan, on the device with the largest live peak
  int64_t plans = 0;
  int64_t plans_resumed = 0;
  int64_t first_planned_request = 0;  // on that device too
  int64_t plans_solved_for_ranks = 0;
  int64_t plans_taken_from_ranks = 0;
  // Requests that the real allocator has served, and whose bytes the peaks leave out.
  int64_t not_in_peaks = 0;
  int64_t faults = 0;  // errors, unknown frees, events lost from a trace, counters that could not be read
  std::vector<Oversubscribed> oversubscribed;
  std::string refused;  // why plans of an earlier run were not used; empty: none were refused
};

// InvalidArgument names `file` and what is wrong. Safe on hostile input.
absl::StatusOr<ProcessSummary> ParseSummary(std::string_view json, std::string_view file);

struct JobRanks {
  std::string job;
  std::string step;
  int restart = 0;
  int run = 0;                          // counted from 1, where there are several runs of one job
  double started = 0;                   // seconds since 1970: its first process
  int world_size = 0;                   // as the launcher said, at least one more than the highest rank seen
  std::vector<ProcessSummary> ranks;    // by rank: of its processes the one with the largest peak
  std::vector<ProcessSummary> further;  // the others: of a rank, or of none
  std::vector<int> missing;             // ranks that left no summary, the first hundred
  int64_t missing_count = 0;
  int64_t faults = 0;  // of all processes
  // Sums over `ranks`; they were not reached at the same moment.
  Bytes live_peak;
  Bytes reserved_peak;
  Bytes lower_bound;
  Bytes slab;
  Bytes median_live_peak;  // of an even number the mean of the two in the middle
  size_t largest = 0;      // of `ranks`, by live peak

  // How far the largest is from the median, as a factor. nullopt: it is above a median of 0, which most ranks have
  // where one alone uses the device.
  std::optional<double> LargestOverMedian() const;
};

// By job, step and restart, in the order of their names, and by run. Of processes that name none and whose
// launcher numbers no jobs, runs are told apart by time: where a rank comes again after all of its processes
// have ended, that is the next run.
std::vector<JobRanks> ByJob(std::vector<ProcessSummary> processes);

}  // namespace reprise::replay
