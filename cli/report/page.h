// Findings as one HTML file.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/report/findings.h"

namespace reprise::cli {

struct PageOptions {
  bool redacted = false;
  std::optional<Bytes> capacity;
  std::string summary{};  // summary.json of the run, which replay::ParseSummary takes; empty: none
  std::string created{};  // date and time
};

// Errors: zlib's.
absl::StatusOr<std::string> PageOf(const LoadedInput& input, const Findings& findings,
                                   const PageOptions& options);

}  // namespace reprise::cli
