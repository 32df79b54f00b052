// The subcommands. Each Add function describes one to CLI11 and leaves what it ends with in `exit_status`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace reprise::cli {

// `job`: the words behind the first `--` of the command line, empty when there is none.
void AddRun(CLI::App& app, const std::vector<std::string>& job, int& exit_status);
// `words`: the command line without `job`.
void AddSlurm(CLI::App& app, const std::vector<std::string>& words, const std::vector<std::string>& job,
              int& exit_status);
void AddMerge(CLI::App& app, int& exit_status);
void AddPlan(CLI::App& app, int& exit_status);
void AddCheck(CLI::App& app, int& exit_status);
void AddSimulate(CLI::App& app, int& exit_status);
void AddStats(CLI::App& app, int& exit_status);
void AddCompare(CLI::App& app, int& exit_status);
void AddConvert(CLI::App& app, int& exit_status);
void AddFit(CLI::App& app, int& exit_status);
void AddDiff(CLI::App& app, int& exit_status);
void AddReport(CLI::App& app, int& exit_status);
void AddDoctor(CLI::App& app, int& exit_status);

}  // namespace reprise::cli
