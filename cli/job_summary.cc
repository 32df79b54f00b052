#include "cli/job_summary.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/shell.h"
#include "cli/console.h"

namespace reprise::cli {
namespace {

constexpr size_t kMostSaid = 16;  // of ranks, and of the steps that a batch script has started

}  // namespace

replay::Launched LaunchedHere() {
  return replay::LaunchedBy([](const char* name) { return static_cast<const char*>(getenv(name)); });
}

std::string FolderOfRanks(const replay::Launched& launched) {
  std::string folder = "reprise-out";
  if (launched.job == "0") return folder;
  folder += '/';
  for (const char c : launched.job) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    folder += plain ? c : '_';
  }
  return folder;
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
