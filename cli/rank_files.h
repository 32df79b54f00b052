// What a job's ranks have left in folders: which trace belongs to which summary, and to which rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::cli {

// Whether a process gives a file of its own that name: summary.rank3.json, trace.rank3.reprise, plans.rank3.json.
bool IsSummary(std::string_view name);
bool IsTrace(std::string_view name);
bool IsPlans(std::string_view name);

// A folder's files whose names differ in the word in front alone: trace.rank3.reprise, summary.rank3.json.
struct RankFiles {
  std::string summary;              // empty: it has left none
  std::vector<std::string> traces;  // one a device, by its number; without those that nothing was written to
  int rank = -1;                    // as the names say, or a trace without a summary; -1: they do not
  int restart = 0;                  // as the names say
};

struct FilesBelow {
  std::vector<RankFiles> processes;  // in the order of their names
  std::vector<std::string> errors;   // a line for each folder that cannot be read
};

// Below each input that is a folder, at any depth. Another input is a summary, or a trace where its name ends
// so, and what lies beside it under the same name belongs to it. Each file once, however often it is named.
FilesBelow FilesOfRanks(const std::vector<std::string>& inputs);

// The traces in a folder itself, by name. Errors: it cannot be read.
absl::StatusOr<std::vector<std::string>> TracesIn(const std::string& folder);

// The one to look at first: of the process that held most at once, as the summaries beside them say; of the same or
// where not each has one, the first of the largest. What has no size, a link to nothing, is passed over; empty: none
// has one.
std::string MainTrace(const std::vector<std::string>& traces);

// The summary that a process left beside one of its traces; empty: none.
std::string SummaryBeside(const std::string& trace);

std::vector<std::string> SummariesOf(const FilesBelow& files);

}  // namespace reprise::cli
