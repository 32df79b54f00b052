// Whether a sequence of events is consistent: what everything behind the readers relies on.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "profiler/types.h"

namespace reprise::profiler {

// Takes a sequence event by event. Memory: the live blocks.
class EventChecker {
 public:
  // InvalidArgument when `event` cannot follow those before it; it then counts as not seen. The message says
  // what is wrong with the event, not where it stands: the caller knows the line or the byte.
  //   alloc: bytes > 0, alignment >= 0, an id above all before, live bytes at most 2^62
  //   free:  a live block
  absl::Status Add(const Event& event);

 private:
  absl::Status AddAlloc(const Event& event);
  absl::Status AddFree(const Event& event);

  absl::flat_hash_map<BlockId, int64_t> live_;  // bytes
  int64_t live_bytes_ = 0;
  uint64_t next_id_ = 0;  // the lowest id the next allocation may have
  bool ids_exhausted_ = false;
};

// For events whose ids only tell blocks apart: numbers the blocks in the order of their allocations, from 0,
// and checks the sequence. InvalidArgument also tells which event is wrong, by its index.
absl::Status NumberBlocks(std::vector<Event>& events);

}  // namespace reprise::profiler
