// The limits of a process under which no memory is served.
#pragma once

#include <vector>

#include "base/units.h"

namespace reprise::cli {

// What is reserved would count against them, so that a job could fail where it would have run: the core
// leaves memory as it is (replay/core/host.cc).
struct MemoryLimit {
  const char* of;         // what is limited
  const char* lifted_by;  // the shell's command
  Bytes bytes;            // negative: not limited
};

// Of this process, and so of the jobs that it starts.
std::vector<MemoryLimit> MemoryLimits();

}  // namespace reprise::cli
