// Small experiments in a process of their own: what goes wrong there goes wrong there alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reprise::cli {

struct Captured {
  bool started = false;
  int exit_status = -1;  // -1: ended by a signal, or by us after the time limit
  std::string out;
  std::string err;
};

// Runs `words` (looked up in PATH) without input, with `variables` ("NAME=VALUE") added to the environment
// and our own REPRISE_ variables and LD_PRELOAD taken out. Ends it after ten seconds. Keeps 64 KiB of each
// stream.
Captured RunCaptured(const std::vector<std::string>& words, const std::vector<std::string>& variables);

// Runs `body` in a fork with its output captured; what it returns is the exit status. The same limits.
Captured RunInFork(const std::function<int()>& body);

// Opens a shared library in a child and gives back what the loader said: empty when it opened.
std::string LoaderError(const std::string& library);

}  // namespace reprise::cli
