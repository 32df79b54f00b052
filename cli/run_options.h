// What the user says of a job to run: the options of `run` and `slurm`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace reprise::cli {

struct RunOptions {
  bool host = false;
  bool cuda = false;
  std::string mode;    // empty: not named
  std::string stacks;  // empty: not named
  std::string out;     // empty: a new folder
  std::string plan;    // empty: none named
  std::string cache;
  std::optional<Bytes> capacity;
  std::optional<Bytes> threshold;
  bool timeline = false;
  bool oversubscribe = false;
  bool report = false;
  std::string folder;  // where files go unless the user says; empty: a new one
};

// `options` must be there for as long as `command` is.
void AddRunOptions(CLI::App& command, RunOptions& options);

// What two of them say against each other; empty: nothing.
std::string_view WhyContradictory(const RunOptions& options);

// The first of the options that say what is to become of what is caught; empty: none was given.
std::string_view OnlyForWhatIsCaught(const RunOptions& options);

}  // namespace reprise::cli
