// What is said when a job has ended.
#pragma once

#include "cli/child.h"
#include "cli/output_folder.h"
#include "cli/run_options.h"

namespace reprise::cli {

// What it left in `folder`, why nothing, and what comes next. Writes the page if one was asked for.
void SayWhatCame(const RunOptions& options, const OutputFolder& folder, const ChildEnd& end);

}  // namespace reprise::cli
