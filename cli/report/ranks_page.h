// A job's ranks as one HTML file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/merge.h"
#include "cli/rank_traces.h"

namespace reprise::cli {

struct RanksPageOptions {
  std::string input;  // as people name it
  bool redacted = false;
  std::optional<Bytes> capacity;
  std::string created{};  // date and time
};

// `traces`: of each of the jobs. Errors: zlib's.
absl::StatusOr<std::string> RanksPageOf(const MergedSummaries& merged, const std::vector<RankTraces>& traces,
                                        const RanksPageOptions& options);

}  // namespace reprise::cli
