// Sites: the frame that a person would name for an allocation.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/stacks.h"

namespace reprise::profiler {

struct Site {
  std::string label{};  // "train.py:12 step"
  std::string file{};
  int64_t line = 0;
  std::string function{};
  std::string library{};  // of a native frame: its module
  friend bool operator==(const Site&, const Site&) = default;
};

// The innermost Python frame that is the job's own, neither an installed package's nor the standard
// library's; else the innermost Python frame; else the innermost frame. For stack 0 a site whose label says
// that none is known.
Site SiteOf(const StackTable& stacks, StackId stack);

}  // namespace reprise::profiler
