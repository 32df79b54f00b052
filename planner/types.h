// What the planner is asked and what it answers.
//
// Glossary
//   buffer       one block of memory with a size and a lifetime; the rectangle of offset assignment
//   lifetime     the half-open range of ticks [lower, upper) in which the buffer's bytes are in use
//   cyclic       a problem whose time is a circle of `period` ticks: a lifetime may run past the period and
//                then wraps to its beginning, still with one offset
//   pinned       a buffer whose offset is given and not to be chosen: an obstacle
//   placement    one offset a buffer
//   slab         the height of a placement: the largest offset + size over the buffers that are not pinned.
//                Obstacles lie where they lie; one far up is no reason to spread the plan up to it
//   load         the sum of the sizes in use at one tick
//   lower bound  a height that no placement can go below: the largest load, plus what obstacles and alignment
//                provably waste (planner/bound.h)
//   gap          slab / lower bound - 1
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace reprise::planner {

struct Buffer {
  Tick lower;
  Tick upper;          // > lower; in a cyclic problem upper - lower <= period and lower is in [0, period)
  Bytes size;          // > 0
  Bytes alignment{1};  // > 0; the offset is a multiple of it
  std::optional<Offset> pinned;  // >= 0; not subject to `alignment`
};

struct Problem {
  std::vector<Buffer> buffers;
  std::optional<int64_t> period;  // > 0; set: the problem is cyclic
  std::optional<Bytes> capacity;  // > 0; set: any slab of at most this is as good as any other
};

struct Placement {
  std::vector<Offset> offsets;  // in the order of Problem::buffers
  Bytes slab;
};

struct Budget {
  double seconds = 1.0;                       // wall-clock time
  const std::atomic<bool>* cancel = nullptr;  // set from another thread: return the best so far
  uint64_t seed = 1;
};

struct Solution {
  Placement placement;
  Bytes lower_bound;
  bool proven_optimal = false;  // slab == lower_bound, or an exact search said so
  std::string solver;           // which member of the portfolio found it
  double seconds = 0;
};

}  // namespace reprise::planner
