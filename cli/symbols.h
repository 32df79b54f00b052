// Names for native frames, from the files that they stand in.
#pragma once

#include <cstdint>

#include "profiler/stacks.h"

namespace reprise::cli {

struct SymbolCounts {
  int64_t frames = 0;   // native ones
  int64_t unnamed = 0;  // of those: the file is gone, is another build, or does not say
  int64_t modules = 0;
  int64_t other_builds = 0;  // of the modules: the file has another build id, or is gone
};

// Fills in function, file and line of native frames. A file counts only if it has the build id that was
// recorded: a name from another build would be a lie. Nothing is downloaded. Kernels' names become readable
// too.
SymbolCounts NameNativeFrames(profiler::StackTable* stacks);

}  // namespace reprise::cli
