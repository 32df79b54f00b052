// What the core is told by the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "replay/core/launcher.h"
#include "replay/core/log.h"

namespace reprise::replay {

enum class Mode { kServe, kRecord, kOff };
// Which call stacks are taken of allocations that are recorded.
enum class Stacks { kOff, kNative, kPython };

struct Config {
  Mode mode = Mode::kServe;               // REPRISE_MODE=serve|record|off
  std::string out;                        // REPRISE_OUT, expanded; empty: no files
  std::string label;                      // in the names of files there: "rank3", "rank3.restart1", ""
  std::string run;                        // REPRISE_RUN: what it is a part of, in its files; empty: nothing
  bool quiet_rank = false;                // another one speaks for the job, unless something is wrong
  std::string plan;                       // REPRISE_PLAN: the plans of an earlier run; empty: none named
  std::string cache;                      // REPRISE_CACHE: a folder of plans by job; empty: none
  Bytes capacity{0};                      // REPRISE_CAPACITY: the most to hold committed; 0: no limit
  Bytes trace_limit{256 * kMiB.count()};  // REPRISE_TRACE_LIMIT: while serving; and of a time line
  Stacks stacks = Stacks::kOff;           // REPRISE_STACKS=off|native|python
  bool timeline = false;                  // REPRISE_TIMELINE=0|1: what the device does goes into the trace
  bool oversubscribe = false;             // REPRISE_OVERSUBSCRIBE=0|1: go on in the host's memory
  LogLevel log = LogLevel::kWarn;         // REPRISE_LOG=quiet|warn|info
  std::vector<std::string> complaints;    // one line for each value that was not understood
};

// What REPRISE_OUT may name: %h, %p, %r, %j, %s, and %% for itself.
struct ProcessNames {
  std::string host;
  int pid = 0;
  Launched launched;
};

ProcessNames NamesOfThisProcess(const Lookup& lookup);

// The folder that a REPRISE_OUT names to a process. nullopt: it has a '%' that names nothing.
std::optional<std::string> ExpandOut(std::string_view pattern, const ProcessNames& names);

// A REPRISE_RUN as files carry it: 128 bytes of it at most, with '_' for each that is not printable ASCII.
std::string RunName(std::string_view given);

// Every value that is not understood leaves its default and one complaint.
Config ReadConfig(const Lookup& lookup, const ProcessNames& names);

}  // namespace reprise::replay
