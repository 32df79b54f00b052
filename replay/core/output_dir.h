// Where a process leaves its files.
//
// Several processes may be given the same folder, at once and one after the other. Each takes names of its
// own: `trace.reprise`, `summary.json`, `plans.json` for the first, the same with its process id before
// the extension for others, so that nobody's file is ever overwritten and the files of one process belong
// together.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise::replay {

class OutputDir {
 public:
  // Makes the folder where it is not there (its parents too) and claims the names of process `pid` by
  // creating its trace file. Errors name the path and what the system said.
  // `label`: stands in each name, before the process id where both are needed; empty: none.
  static absl::StatusOr<OutputDir> Open(std::string_view path, int pid, std::string_view label = "");

  // Makes an empty file for the process at a path of its own. AlreadyExists, naming it, where there is one.
  static absl::Status Claim(const std::string& path);

  // "summary.json" -> "DIR/summary.json", or "DIR/summary.4711.json" for a second process.
  std::string PathOf(std::string_view name, std::string_view extension) const;
  std::string trace_path() const { return PathOf("trace", ".reprise"); }
  std::string summary_path() const { return PathOf("summary", ".json"); }

 private:
  OutputDir(std::string path, std::string suffix) : path_(std::move(path)), suffix_(std::move(suffix)) {}

  std::string path_;
  std::string suffix_;
};

}  // namespace reprise::replay
