#include "cli/job_summary.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "base/shell.h"
#include "cli/console.h"
#include "replay/core/config.h"

namespace reprise::cli {
namespace {

constexpr size_t kMostSaid = 16;  // of ranks, and of the steps that a batch script has started

}  // namespace

replay::Launched LaunchedHere() {
  return replay::LaunchedBy([](const char* name) { return static_cast<const char*>(getenv(name)); });
}

std::string FolderOfRanks(const replay::Launched& launched) {
  if (launched.job == "0") return "reprise-out";
  return replay::ExpandOut("reprise-out/%j", {.launched = launched})
      .value_or("");  // the pattern is a good one
}

void SayMerged(const MergedSummaries& merged) {
  for (const std::string& error : merged.errors) Say(error);
  const std::string text = MergedText(merged, kMostSaid);
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty())))
    Say(line);
}

bool SayRanks(const std::string& folder, const MergedSummaries& merged) {
  if (!HasRanks(merged)) return false;
  SayMerged(merged);
  SayNext(fmt::format("merge {}", QuotedFile(folder)));
  return true;
}

}  // namespace reprise::cli
