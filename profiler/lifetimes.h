// From events to lifetimes: when each block was there, and how much was there at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/types.h"

namespace reprise::profiler {

// The lifetime [alloc, free) of one block. A tick is an index into the events.
struct BlockLifetime {
  BlockId id{};
  Tick alloc;
  Tick free;  // one past the last event for a block that is never freed
  Bytes bytes;
  Bytes alignment;  // as in Event: 0 when none was asked for
  Stream stream{};
  bool never_freed = false;
};

struct LifetimeTable {
  std::vector<BlockLifetime> blocks;  // in order of allocation
  Bytes live_peak;                    // requested bytes live at once, at most
  Tick peak_at;                       // the first allocation that reached it; 0 when there is none
};

// `events` must be consistent (event_check.h).
LifetimeTable LifetimesOf(const std::vector<Event>& events);

// The allocations among `events` of what is live right after the one at the index `at`, in no order.
std::vector<const Event*> LiveAt(const std::vector<Event>& events, int64_t at);

}  // namespace reprise::profiler
