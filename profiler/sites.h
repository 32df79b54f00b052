// From a call stack to the one place that a person would name for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profiler/stacks.h"

namespace reprise::profiler {

inline constexpr std::string_view kNoStack = "(no stack)";  // the name of what has none

struct Site {
  std::string label{};     // "train.py:12 step"
  std::string file{};      // of source code; empty: not known
  int64_t line = 0;        // in `file`, from 1
  std::string function{};  // empty: not known
  std::string library{};   // "torch", "cuBLAS", "libfoo.so"; empty: the job's own code
  friend bool operator==(const Site&, const Site&) = default;
};

// Python before native. Of Python frames the innermost that is the job's own (IsOwnCode), else the innermost.
// Of native frames the innermost outside of allocators, the C and C++ libraries, frameworks and interpreters,
// else "backward pass" on PyTorch's threads for it, else the call that entered the innermost of their
// libraries, as far as names are known. For a stack of no frames a label that says so.
Site SiteOf(const StackTable& stacks, StackId stack);

// False for Python's standard library, installed packages, PyTorch wherever it lies, and code that a library
// makes up.
bool IsOwnCode(std::string_view python_file);

// What people call the library in a module's file: "cuBLAS" for /usr/lib/libcublas.so.12; its file's name
// where it is none of those known; "" for no path.
std::string LibraryOf(std::string_view module_path);

// How a native function's name, or the name of a module's file, begins, where SiteOf knows by that whose it is; ""
// otherwise.
std::string_view KnownPrefix(std::string_view function);
std::string_view KnownLibraryPrefix(std::string_view module_path);

// The library of the stack's innermost native frame that is no allocator's: who asked for the memory, be it
// the framework or a library beside it. "" where no native frame tells.
std::string LibraryThatAsked(const StackTable& stacks, StackId stack);

// The frames' names that Reprise gives where there is no code to name.
inline constexpr std::string_view kBackwardFrame = "<backward>";
inline constexpr std::string_view kThreadFrame = "<thread ";  // and its name, and '>'

// Whether the site is a place in code and not just what is known of whoever asked.
bool SaysWhere(const Site& site);

}  // namespace reprise::profiler
