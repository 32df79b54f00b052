// Who speaks for a job of many ranks, and where its files go: one banner and one summary, not one a rank.
#pragma once

#include <string>

#include "cli/merge.h"
#include "replay/core/launcher.h"

namespace reprise::cli {

// What the launcher says of this process.
replay::Launched LaunchedHere();

// Where ranks leave their files unless told: the same for all of them, and another one for the next job where
// the launcher tells jobs apart.
std::string FolderOfRanks(const replay::Launched& launched);

// Says what these summaries come to, one line each for the first ranks of the first jobs.
void SayMerged(const MergedSummaries& merged);

// Says what the ranks left in `folder` and what comes next; false, and nothing said, where no summary is a rank's.
bool SayRanks(const std::string& folder, const MergedSummaries& merged);

}  // namespace reprise::cli
