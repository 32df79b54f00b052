// The report as `reprise report` and `reprise run --report` make it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "cli/report/findings.h"
#include "cli/report/page.h"

namespace reprise::cli {

struct ReportOptions {
  std::string input;   // a file, or a run's output folder
  std::string output;  // empty: beside the input
  bool redact = false;
  std::optional<Bytes> capacity;
  double seconds = 30;  // for planning and models
};

// What a page says, and where it goes.
struct Report {
  std::string trace;  // or other input, that it is on
  std::string output;
  LoadedInput input;
  Findings findings;
  PageOptions page;
  std::string summary_error;  // why the run's summary is not on the page; empty: it is, or there is none
};

// Errors: the input's.
absl::StatusOr<Report> MakeReport(const ReportOptions& options);

// Writes the page, replacing what is there, and says on stderr what was written, what was left out and why.
// Errors: the output's.
absl::Status WriteReport(const Report& report);

}  // namespace reprise::cli
