// A command that runs a job under the preload library: `run`, and `slurm` in a batch script.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_options.h"

namespace reprise::cli {

struct JobCommand {
  std::string folder;  // where files go unless the user says; empty: a new reprise-out
  // Given what CLI11 left over in front of `--`: the exit status where that is no job to run here.
  std::function<std::optional<int>(const RunOptions& options, const std::vector<std::string>& left_over)>
      instead;
};

// Gives `command` its options and has it run `job`, the words behind `--`.
void AddJobOptions(CLI::App* command, const JobCommand& kind, const std::vector<std::string>& job,
                   int& exit_status);

}  // namespace reprise::cli
