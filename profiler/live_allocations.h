// What is live as a sequence goes by: the allocations whose blocks are not yet freed.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "base/units.h"
#include "profiler/types.h"

namespace reprise::profiler {

// Takes a sequence event by event; it checks none of it (event_check.h). Memory: the live blocks.
class LiveAllocations {
 public:
  // What an event does to the live bytes: nothing where it is a mark, or a free of what is not live.
  struct Change {
    const Event* alloc = nullptr;  // the allocation of the block that comes or goes; null: none does
    Bytes bytes;                   // by which the live bytes rise; negative for a free
  };
  // `event` must stay where it is until its block is freed: it is named again then.
  Change Add(const Event& event);

  Bytes bytes() const { return bytes_; }

 private:
  Change AddAlloc(const Event& event);
  Change AddFree(const Event& event);

  // With their bytes: for these alone no event is read again, which long after it was first read takes time.
  absl::flat_hash_map<BlockId, Change> live_;
  Bytes bytes_;
};

}  // namespace reprise::profiler
