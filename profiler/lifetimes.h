// From events to lifetimes: when each block was there, and how much was there at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/types.h"

namespace reprise::profiler {

// The lifetime [alloc, free) of one block. A tick is an index into the events; what else there is to say of the
// block, its allocation says.
struct BlockLifetime {
  Tick alloc;
  Tick free;  // one past the last event for a block that is never freed
};

// In order of allocation. `events` must be consistent (event_check.h).
std::vector<BlockLifetime> LifetimesOf(const std::vector<Event>& events);

struct LivePeak {
  Bytes bytes;   // requested bytes live at once, at most
  int64_t at{};  // index of the first allocation that reached it; 0 when there is none
};
// The same of `events`. Memory: the live blocks.
LivePeak LivePeakOf(const std::vector<Event>& events);

// The allocations among `events` of what is live right after the one at the index `at`, in no order.
std::vector<const Event*> LiveAt(const std::vector<Event>& events, int64_t at);

}  // namespace reprise::profiler
