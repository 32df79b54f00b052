// An input's blocks as the page draws them, and the time line under them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "profiler/types.h"

namespace reprise::cli {

// What blocks have in common that the page colours and names them by.
struct BlockKind {
  Bytes bytes;
  profiler::StackId stack{};
  uint32_t stream = 0;  // index into BlockTable::streams
};

struct DrawnBlock {
  uint32_t start = 0;  // index of the event
  uint32_t end = 0;    // of the free; the number of events where there is none
  uint32_t kind = 0;
};

struct BlockTable {
  std::vector<DrawnBlock> all;  // in order of allocation
  std::vector<BlockKind> kinds;
  std::vector<Stream> streams;
  std::vector<uint32_t> drawn;  // indices of those that are drawn, ascending: the largest areas
  Bytes largest_left;           // the largest block that is not drawn
};

// At most `most` blocks are drawn: those with the largest size times lifetime.
BlockTable BlocksOf(const std::vector<profiler::Event>& events, size_t most);

// The live bytes in at most `most` points, each for `step` events in a row.
struct TimelinePoints {
  int64_t step = 1;
  std::vector<double> least, most;  // live right after an event
  std::vector<double> not_drawn;    // most live bytes of the blocks that are not drawn
  std::vector<double> time_us;      // of the first event; empty where the input has no times
};
TimelinePoints PointsOf(std::span<const profiler::Event> events, const BlockTable& blocks, size_t most);

// The largest of each `step` in a row.
std::vector<double> LargestOfEach(std::span<const Bytes> series, int64_t step);

}  // namespace reprise::cli
