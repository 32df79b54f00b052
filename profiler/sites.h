// From a call stack to the one place that a person would name for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiler/stacks.h"
#include "profiler/types.h"

namespace reprise::profiler {

struct Site {
  std::string label;     // "train.py:12 step"
  std::string file;      // of source code; empty: not known
  int64_t line = 0;      // in `file`, from 1
  std::string function;  // empty: not known
  std::string library;   // "torch", "cuBLAS", "libfoo.so"; empty: the job's own code
  friend bool operator==(const Site&, const Site&) = default;
};

// Python before native. Of Python frames the innermost that is the job's own (IsOwnCode), else the innermost.
// Of native frames the innermost outside of allocators, the C and C++ libraries, frameworks and interpreters,
// else the call that entered the innermost of their libraries, as far as names are known. All empty for a
// stack of no frames.
Site SiteOf(const StackTable& stacks, StackId stack);

// False for Python's standard library, installed packages, PyTorch wherever it lies, and code that a library
// makes up.
bool IsOwnCode(std::string_view python_file);

// What people call the library in a module's file: "cuBLAS" for /usr/lib/libcublas.so.12; its file's name
// where it is none of those known; "" for no path.
std::string LibraryOf(std::string_view module_path);

// The frames' names that Reprise gives where there is no code to name.
inline constexpr std::string_view kBackwardFrame = "<backward>";
inline constexpr std::string_view kThreadFrame = "<thread ";  // and its name, and '>'

struct SiteShare {
  Site site;
  Bytes bytes;
  int64_t blocks = 0;
};

struct SitesLive {
  std::vector<SiteShare> sites;  // most bytes first, then by label; blocks without a stack are in none
  Bytes live;                    // all blocks
  Bytes attributed;              // of those, the ones whose stack says more than the name of a thread
};

// What is live after the event with index `at`, by site. `events` are a consistent sequence; sites are the
// same where all of their fields are.
SitesLive SitesLiveAt(const std::vector<Event>& events, const StackTable& stacks, size_t at);

}  // namespace reprise::profiler
