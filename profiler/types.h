// What happened: the events of a job's allocations, in order.
//
// Glossary
//   event        one allocation, one free, or one mark
//   sequence     the events of one job in the order they happened. In a consistent one the ids of allocations
//                rise, every free names a live block, and the live bytes fit their type (event_check.h)
//   mark         a boundary told from outside (the true iteration number in the bench data, an annotation);
//                never consulted when iterations are found
//   live bytes   the sum of the requested bytes of the blocks allocated and not yet freed
//   token        what the period finder sees of an event: an allocation of at least 4 KiB, by (size, stream)
//   period       the number of tokens after which the sequence repeats: one iteration
//   cut          the token of the cycle with the least live bytes before it, where an iteration begins for us
//   persistent   a block that outlives the iterations seen (weights, optimizer state); not part of a plan
#pragma once

#include <cstdint>

#include "base/units.h"

namespace reprise::profiler {

enum class EventKind : uint8_t { kAlloc = 0, kFree = 1, kMark = 2 };

// What every block on a CUDA device begins at a multiple of: cudaMalloc's, its pools' and PyTorch's
// allocator's.
inline constexpr Bytes kDeviceAlignment{512};

// Names a call stack (stacks.h). 0: none was recorded.
enum class StackId : uint32_t {};

struct Event {
  EventKind kind = EventKind::kAlloc;
  BlockId id{};         // alloc, free: the block (see "sequence"). mark: the number the mark carries
  Bytes bytes{};        // alloc: requested bytes; otherwise 0
  Bytes alignment{};    // alloc: requested alignment, 0 when none was asked for
  Stream stream{};      // the stream the call named
  uint32_t thread = 0;  // small number given to each thread in order of appearance; 0 when not recorded
  StackId stack{};      // alloc: where it was asked for (Trace::stacks); 0 when not recorded
  int64_t time_ns = 0;  // since the trace began; 0 when not recorded. A trace file keeps whole microseconds
  friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace reprise::profiler
