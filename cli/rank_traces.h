// What the traces of a job's ranks held at their peaks, side by side.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/rank_files.h"
#include "cli/rank_table.h"
#include "cli/report/redact.h"

namespace reprise::cli {

struct RankTraces {
  struct Trace {
    int rank = 0;
    std::string file;                // the first of its traces; empty under a redactor
    Bytes live_peak;                 // of what was recorded, all devices together
    bool stacks = false;             // its allocations have call stacks
    std::string_view why_not_whole;  // one of its traces; empty: they are
  };
  std::vector<Trace> traces;     // by rank
  std::vector<size_t> compared;  // which of them are in the rows
  bool by_site = false;          // else by size
  // A site or a size each, and what each of `compared` held of it at its own peak.
  std::vector<RankTable::Row> rows;
  size_t rows_left = 0;
  std::vector<std::string> notes;   // for people: what is not in the rows, and why
  std::vector<std::string> errors;  // of traces that cannot be read, with their names
};

struct RankTracesOptions {
  size_t most_rows = 200;
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
  Redactor* redactor = nullptr;  // null: names stay
};

// Of those compared that are not whole how many there are, and why: "2 of 8 traces are not whole: events were
// dropped"; empty: there are none.
std::string NotWhole(const RankTraces& traces);

// Of each of `files` the traces; one is in memory at a time, and of it stays what it held at its peak. What
// cannot be read, or not before `end`, is a note. Every rank stands in one of `files` at most.
RankTraces CompareTraces(const std::vector<RankFiles>& files, const RankTracesOptions& options);

}  // namespace reprise::cli
