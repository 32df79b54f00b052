// What doctor finds: a line each, from one file a subject.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"

namespace reprise::cli {

enum class Verdict { kFine, kNote, kProblem };

struct Check {
  std::string name;
  Verdict verdict = Verdict::kFine;
  std::string found;
  std::string advice;  // for a problem: what to do
};

inline Check Fine(std::string name, std::string found) {
  return {std::move(name), Verdict::kFine, std::move(found), ""};
}
inline Check Note(std::string name, std::string found, std::string advice = "") {
  return {std::move(name), Verdict::kNote, std::move(found), std::move(advice)};
}
inline Check Problem(std::string name, std::string found, std::string advice) {
  return {std::move(name), Verdict::kProblem, std::move(found), std::move(advice)};
}

inline std::string EnvironmentOr(const char* name, std::string_view otherwise) {
  const char* const value = getenv(name);
  return value == nullptr || *value == '\0' ? std::string(otherwise) : value;
}

inline std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// The first line of a small file, empty when it is not there.
inline std::string LineOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() ? FirstLine(*text) : "";
}

// Driver, devices, toolkit. `driver`: the loader finds one.
void CheckCuda(bool driver, std::vector<Check>& checks);

// Who started this process, as which rank, and in what container.
void CheckLauncher(std::vector<Check>& checks);

// What others have the loader put into every process.
void CheckOtherPreloads(std::vector<Check>& checks);

// Whether call stacks can be had.
void CheckStacks(std::vector<Check>& checks);

// The frameworks of the python3 at hand, and what the user has told them of memory.
void CheckFrameworks(std::vector<Check>& checks);

}  // namespace reprise::cli
