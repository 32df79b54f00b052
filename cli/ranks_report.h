// The report on a job's ranks, as `reprise report` and `reprise run --report` make it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "cli/merge.h"
#include "cli/rank_files.h"

namespace reprise::cli {

struct RanksReportOptions {
  std::string input;   // as people name it
  std::string output;  // the page, replaced if it is there
  bool redact = false;
  std::optional<Bytes> capacity;
  double seconds = 30;  // for reading traces
};

// Whether there is more than one rank in it, be it of traces alone.
bool HasRanks(const MergedSummaries& merged, const FilesBelow& files);

// Writes the page and says so on stderr, as of every trace that cannot be read. Returns whether all of them were.
// Errors: the output's.
absl::StatusOr<bool> WriteRanksReport(MergedSummaries merged, const FilesBelow& files,
                                      const RanksReportOptions& options);

}  // namespace reprise::cli
