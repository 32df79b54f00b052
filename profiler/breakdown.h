// Whose the bytes are: by stream over the whole sequence, and by the library that asked, at one moment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/site_stats.h"
#include "profiler/stacks.h"
#include "profiler/types.h"

namespace reprise::profiler {

// A block is its allocation's stream's, wherever it is freed.
struct StreamUse {
  Stream stream{};
  int64_t allocs = 0;
  Bytes allocated;
  Bytes live_peak;  // of this stream alone
  int64_t blocks_at_peak = 0;
  Bytes at_peak;  // right after the event that was asked for
};
// In order of first allocation.
std::vector<StreamUse> ByStream(const std::vector<Event>& events, int64_t peak_at);

struct LibraryUse {
  std::string library;  // LibraryThatAsked; empty: the stacks do not tell
  int64_t blocks = 0;
  Bytes bytes;
};
// Most bytes first. Nothing where no stack tells.
std::vector<LibraryUse> ByLibrary(const StackTable& table, std::span<const StackBytes> stacks);

}  // namespace reprise::profiler
