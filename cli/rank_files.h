// What a job's ranks have left in folders: which trace belongs to which summary, and to which rank.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

// A folder's files whose names differ in the word in front alone: trace.rank3.reprise, summary.rank3.json.
struct RankFiles {
  std::string summary;              // empty: it has left none
  std::vector<std::string> traces;  // one a device, by its number; without those that nothing was written to
  int rank = -1;                    // as the names say; -1: they do not
  int restart = 0;                  // the same
};

struct FilesBelow {
  std::vector<RankFiles> processes;  // in the order of their names
  std::vector<std::string> errors;   // a line for each folder that cannot be read
};

// Below each input that is a folder, at any depth. Another input is a summary, or a trace where its name ends
// so, and what lies beside it under the same name belongs to it. Each file once, however often it is named.
FilesBelow FilesOfRanks(const std::vector<std::string>& inputs);

// The summary that a process left beside one of its traces; empty: none.
std::string SummaryBeside(const std::string& trace);

std::vector<std::string> SummariesOf(const FilesBelow& files);

}  // namespace reprise::cli
