// What a process under Reprise says when it ends: to people on stderr, to machines in summary.json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "replay/core/config.h"
#include "replay/engine.h"

namespace reprise::replay {

// What the core counts beside the engine (law 7).
struct HostCounters {
  // Not asked of the engine: while the core was opened, alignment or size beyond it, a fork going on, after
  // an error.
  int64_t passed = 0;
  int64_t passed_while_opening = 0;  // of these, other threads' while the core was opened
  int64_t late_frees = 0;            // freed without the lock, taken in later
  int64_t errors = 0;                // exceptions met at the seam; after the first everything is passed
};

struct TraceCounters {
  int64_t events = 0;
  Bytes bytes;             // written
  int64_t dropped = 0;     // events lost while recording went on: the writer fell behind
  int64_t after_end = 0;   // that came when recording had ended
  std::string stopped;     // why recording ended early; empty: it did not
  bool full = false;       // at its limit
  int64_t activities = 0;  // kernels, copies, sets and markers, of a time line
  int64_t activities_dropped = 0;
  bool activities_full = false;  // the time line ended at its limit
  int64_t without_stack = 0;     // allocations whose call stack was wanted and could not be had
};

struct TraceSummary {
  std::string path;  // empty: none
  TraceCounters counters;
};

// Plans from one run to the next (saved_plan.h).
struct PlansSummary {
  std::string read;                     // the file; empty: there was none
  std::string refused;                  // why it was not to be used
  std::string written;                  // the file; empty: none
  std::string beside;                   // the same or another, beside the summary; empty: none
  std::optional<uint64_t> left_beside;  // a hash of what is in it
  std::set<std::string> not_kept;       // why they are not where they were to be; each is said once
};

// One engine.
struct EngineSummary {
  bool complete = true;  // false: the process ended inside the engine, whose counters could not be read
  Counters counters;
  TraceSummary trace;
  PlansSummary plans;
};

// One CUDA device.
struct DeviceSummary : EngineSummary {
  int ordinal = 0;
  std::string name;
  std::string not_served;  // why the device is left to the driver; nothing is counted then
  std::string refusal;     // what the driver said when it last refused the arena memory
  // Oversubscribed: what lay in the host's memory for want of the device's.
  int64_t granules_in_host = 0;  // at the end
  int64_t granules_in_host_peak = 0;
  Bytes in_host_peak;
  Bytes on_device_full;         // the most that the device has given when it had no more
  int64_t capture_passes = 0;   // requests left to the driver because something was being captured
  int64_t unrecorded = 0;       // others left to the driver that the engine was not told of
  int64_t memory_waits = 0;     // times that the host waited for the device because memory had run out
  int64_t refused_exports = 0;  // exports of blocks that cannot be exported
  bool segments_only = false;   // the job's allocator takes whole segments and hides the tensors in them
};

// Plans that ranks of a job solve once between them (shared_solves.h).
struct SolvesSummary {
  int64_t solved = 0;  // by this process
  int64_t taken = 0;   // as another rank has solved them
  int64_t lost = 0;    // by this process, and could not be written for the others
};

// The process, and its engine. Where it has devices the engine is that with the largest live peak.
struct Summary : EngineSummary {
  Mode mode = Mode::kServe;
  int pid = 0;
  std::string host;
  std::string run;  // what the process was a part of; empty: nothing that has a name
  Launched launched;
  bool files = false;    // were wanted, and there may be none
  double started = 0;    // seconds since 1970: when the core was opened
  double ended = 0;      // when this was put together
  bool running = false;  // the process went on then; it has left this if it was killed
  std::string command;
  Bytes threshold;  // of the host's allocations
  Bytes capacity;   // 0: no limit
  HostCounters host_counters;
  SolvesSummary solves;
  std::vector<DeviceSummary> devices;  // empty: not CUDA
};

// Whether the next attempt of a job that the device's memory was not enough for gets along with that: what its plan
// needs (0: there was none), what was live at once, since whatever came after the plan, an evaluation say, comes
// again, and what the device gave.
struct NextAttempt {
  Bytes plan_needs;
  Bytes live_peak;
  Bytes given;

  Bytes Needs() const { return plan_needs == Bytes(0) ? Bytes(0) : std::max(plan_needs, live_peak); }
  std::string Verdict() const;
};

// A few aligned lines, each ended; of a process that is no part of a run the last names the command to run next.
std::string SummaryText(const Summary& summary);

// One JSON object; the counters under the names that `simulate --json` uses.
std::string SummaryJson(const Summary& summary);

}  // namespace reprise::replay
