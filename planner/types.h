// What the planner is asked and what it answers.
//
// Glossary
//   buffer       one block of memory with a size and a lifetime; the rectangle of offset assignment
//   lifetime     the half-open range of ticks [lower, upper) in which the buffer's bytes are in use
//   cyclic       a problem whose time is a circle of `period` ticks: a lifetime may run past the period and
//                then wraps to its beginning, still with one offset
//   gap          a range of ticks within a lifetime in which the buffer's bytes are not in use, so that
//                others may have them (MiniMalloc's term). Not to be confused with that of a placement, below
//   pinned       a buffer whose offset is given and not to be chosen: an obstacle
//   outside      a buffer that the placement leaves out: it lives elsewhere
//   lane         the stream of execution that a buffer's uses are ordered on
//   crossing     bytes of one lane that go to a buffer of another lane next: the free must record an event,
//                and the next use wait for it
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
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "planner/rules.h"

namespace reprise::planner {

struct LifetimeGap {
  Tick lower;
  Tick upper;  // > lower
};

struct Buffer {
  Tick lower;
  Tick upper;          // > lower; in a cyclic problem upper - lower <= period and lower is in [0, period)
  Bytes size;          // > 0
  Bytes alignment{1};  // > 0; the offset is a multiple of it
  std::optional<Offset> pinned;  // >= 0; not subject to `alignment`
  std::vector<LifetimeGap>
      gaps{};  // ascending, apart, strictly within the lifetime (in ticks as `lower` and `upper`)
  int32_t lane = 0;
  bool outside = false;  // not together with `pinned`
  // Where an earlier placement had it; a placement that is to be kept stays as near to these as it can.
  // Advice.
  std::optional<Offset> previous{};
};

// May bytes that a buffer of one lane has left be used by another lane? Pinned buffers have no lane.
enum class Reuse {
  kAllowed,
  kForbidden,  // no two buffers of different lanes share a byte at any time
  kPriced,     // yes, but each crossing counts as Problem::crossing_price bytes of slab
};

struct Problem {
  std::vector<Buffer> buffers;
  std::optional<int64_t> period;  // > 0; set: the problem is cyclic
  std::optional<Bytes> capacity;  // > 0; set: any slab of at most this is as good as any other
  Reuse reuse = Reuse::kAllowed;
  Bytes crossing_price{0};  // >= 0
};

// The offset of a buffer that is outside.
inline constexpr Offset kOutside{-1};

struct Placement {
  std::vector<Offset> offsets;  // in the order of Problem::buffers
  Bytes slab;
};

inline constexpr int kMostThreads = 2;

// When the search ends, besides at the bound and at the capacity. With `steps` alone the answer is the same
// on every machine and at every load; time is for those who wait. Where crossings are priced, the last pass,
// which avoids them, is ended by time and cancel alone.
struct Budget {
  double seconds = 1.0;                       // wall-clock time
  const std::atomic<bool>* cancel = nullptr;  // set from another thread: return the best so far
  uint64_t seed = 1;
  int64_t steps = std::numeric_limits<int64_t>::max();  // of work, a thread; one is about 0.1 us
  int threads = 1;                                      // at most kMostThreads
  Rules rules{};
};

struct Solution {
  Placement placement;
  Bytes lower_bound;
  bool proven_optimal = false;  // slab == lower_bound, or an exact search said so
  std::string solver;           // which member of the portfolio found it
  double seconds = 0;
  int64_t steps = 0;
  int64_t crossings = 0;  // counted where they are priced
};

}  // namespace reprise::planner
