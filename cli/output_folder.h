// The folder that a run's files go to, and which of the files in it are the run's.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_options.h"

namespace reprise::cli {

// Where the job's processes leave their files.
struct OutputFolder {
  std::string pattern;           // for REPRISE_OUT, absolute; empty: no files
  std::string path;              // as people name it; empty: only the processes know (a pattern, no files)
  std::set<std::string> before;  // what was in it; of a rank's not known
  // Which of the others are of this run: other jobs may leave theirs at the same time. Empty: not told apart,
  // because whoever started this rank does, or nobody looks for them here.
  std::string run;
};

// What --out, else REPRISE_OUT says; empty: neither.
std::string NamedPattern(const RunOptions& options);

// What the user has named, else where ranks meet, else `options.folder`, else a new one; none where nothing
// is caught. Says so where none can be made.
OutputFolder ChooseFolder(const RunOptions& options);

// Names in `folder` that were not there before, are of that kind and not of another run, the shortest first.
std::vector<std::string> NewFiles(const OutputFolder& folder, bool (*is_of_kind)(std::string_view));

// For a page that was not there before.
std::string PagePath(const OutputFolder& folder);

// An errno; 0: files can be made in that folder. Tried, with a byte in one, because not every place tells: it may be
// full, or a quota used up, and have room for a name still.
int WhyNotWritable(const std::string& folder);

}  // namespace reprise::cli
