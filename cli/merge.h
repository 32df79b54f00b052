// A job's ranks for people and for machines: of `reprise merge`, and at the end of a run that had ranks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rank_files.h"
#include "replay/core/rank_summaries.h"

namespace reprise::cli {

struct MergedSummaries {
  std::vector<replay::JobRanks> jobs;
  size_t files = 0;                 // read and understood
  std::vector<std::string> errors;  // a line for each file that was not
};

// What a file holds that may be a summary: none is as large as some files are.
absl::StatusOr<std::string> ReadSummaryFile(const std::string& file);
absl::StatusOr<replay::ProcessSummary> ReadSummary(const std::string& file);

// One file at a time, so that what is held does not grow with their size.
MergedSummaries MergeSummaries(const std::vector<std::string>& files);
// With what else was wrong in these folders.
MergedSummaries MergeBelow(const FilesBelow& files);

// True where at least one of them was started as one of several.
bool HasRanks(const MergedSummaries& merged);

// True where the summary of a rank is not of its end: it was killed, or still runs.
bool AnyRunning(const MergedSummaries& merged);

// True where that of any process is of its end.
bool AnyEnded(const MergedSummaries& merged);

// At most `most` jobs, of each at most as many ranks, and of what ranks say each for itself as many; the rest is counted.
std::string MergedText(const MergedSummaries& merged, size_t most);
std::string MergedJson(const MergedSummaries& merged);

// "job 77.0, restart 1", "the job" where the launcher has no number for it, with "run 2, started ..." where
// there are several.
std::string NameOf(const replay::JobRanks& job);

// Its largest live peak, and how far that is from the median; it has a rank.
std::string LargestText(const replay::JobRanks& job);

}  // namespace reprise::cli
