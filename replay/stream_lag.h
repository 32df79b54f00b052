// Streams run at once, and a plan keeps it so: memory that goes from one to another lies free in between for as long as
// the one may be behind the other.
//
// By the host's count a block is free when its free is queued, and the next may have its place. On another stream
// that one waits, on the device, for all that was queued before the free (stream_order.h). A stream that gathers the
// weights of the next layer while this one computes would wait for this one: what is to run at once runs one after the
// other. So where the stream changes a place is kept from the next for a lag, in tokens, by which the other has come that
// far anyway.
//
// Glossary
//   main stream   the one that takes the most blocks of the cycle
//   aside         a block that another stream takes or leaves
//   lane          the blocks aside that one other stream takes, whoever leaves them, or that the main one takes and it leaves
//   lag           how far a lane may be from the main stream. What one hands to the other is held by each in turn, so nobody
//                 is further off than such a block lives (a quarter of the lane's bytes live no longer), and mostly than
//                 half of it. What lives while the main stream takes nothing is not handed to it, and says nothing
//   chain         blocks of a lane that follow one another in one place, without a lag between them
//   apart         a stream that takes turns with the main one by the host's count and hands it nothing: another model's, say. Nobody
//                 knows how far the two are from each other, so they share no bytes
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/types.h"
#include "profiler/iteration.h"

namespace reprise::replay {

// A problem whose placements are placements of another one too, with room for the lag.
struct Lagged {
  planner::Problem problem;
  // By buffer of the other, pinned ones aside: the buffer of `problem` that it lies in.
  std::vector<uint32_t> place_of;
  bool has_apart = false;  // streams
};

struct LagRules {
  int64_t parts = 2;  // the lag is one of so many of how long a lane's blocks live
  bool apart = true;  // streams that take turns share nothing
};

// `problem` has a buffer for each of `slot_of`, not pinned, in the order of their lower ends, and pinned ones behind them; `slots` is
// the cycle that these are of. Nullopt: one stream takes and leaves all of them. O(n log n), and O(n) for each stream that is not in
// step with the main one.
std::optional<Lagged> WithLag(const planner::Problem& problem, std::span<const profiler::Slot> slots,
                              std::span<const uint32_t> slot_of, LagRules rules);

// That streams run at once, and do not wait for one another's memory, is worth a quarter of what is held at most. PyTorch's own
// allocator, which keeps what each stream has freed for itself, takes about as much, or more (streams_bench).
constexpr bool IsMuchForLag(Bytes bytes, Bytes held) { return bytes * 4 > held; }

// Whether a stream takes or leaves any of the cycle's blocks beside another.
bool OfSeveralStreams(std::span<const profiler::Slot> slots);

}  // namespace reprise::replay
