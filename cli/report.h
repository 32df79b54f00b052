// The report as `reprise report` and `reprise run --report` make it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/units.h"

namespace reprise::cli {

struct ReportOptions {
  std::string input;   // a file, or a run's output folder
  std::string output;  // empty: beside the input
  bool redact = false;
  std::optional<Bytes> capacity;
  double seconds = 30;  // for planning and models
};

// Writes the page, replacing what is there, and says on stderr what was written and what was left out.
// Returns the trace, or other input, that it is on. Errors: InvalidArgument and those of reading for the
// input, others for the output.
absl::StatusOr<std::string> WriteReport(const ReportOptions& options);

}  // namespace reprise::cli
