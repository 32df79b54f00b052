// How low a slab can be at best.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/problem.h"
#include "planner/types.h"

namespace reprise::planner {

// The largest sum of sizes in use at one tick, pinned buffers included.
Bytes MaxLive(const Problem& problem);
// The least height under which there is room for the free buffers in use at any tick, after the pinned ones have taken theirs,
// if they could be cut into pieces: not above LowerBound, which knows that they cannot. O(n log n).
Bytes HeightOfLoad(const Problem& problem);

// What one lane has of a problem.
struct Lane {
  std::vector<size_t> buffers;  // their indices in the problem
  Bytes max_live;
};

// Whether the buffer is laid among those of its lane.
inline bool HasLane(const Buffer& buffer) { return !buffer.pinned && !buffer.outside; }

// Whether all of those are of one lane.
bool HasOneLane(const Problem& problem);

// Those with a buffer, in order of their numbers.
std::vector<Lane> LanesOf(const Problem& problem);

// A height that the slab of no placement can be below: over all ticks, the largest height under which there
// is just enough room for the free buffers in use, after the pinned ones have taken theirs. What lies above
// the slab wastes nothing, so a pinned buffer counts only as far as the slab must reach past it; without
// pinned buffers this is MaxLive. When every offset is a multiple of some g > 1, a buffer also wastes the
// bytes up to the next multiple, the topmost one excepted; that holds for those alone whose alignment is coarse, too.
// Where there are pinned buffers, at least what each of the largest takes that is alone with them. Of a problem whose
// lanes may not share bytes at least the sum of what each of them has in use at most. 0 when every buffer is pinned.
// O(n log n), once for each alignment among powers of two.
Bytes LowerBound(const Problem& problem);
Bytes LowerBound(const Instance& instance);

// What offsets are multiples of: of all buffers, and of those alone whose alignments are coarse.
class Grains {
 public:
  void Add(int64_t alignment);

  // Each a multiple of the one before; for those whose alignment is a multiple of it. One for each power of two that is
  // the largest in some alignment: the greatest common divisor of all alignments that are multiples of that power.
  std::vector<int64_t> Ascending() const;

 private:
  std::array<int64_t, 64> common_{};  // by the largest power of two in an alignment; 0 where there is none
};

// The same of buffers that are told of one after another as time goes by, none of them pinned: for sequences so
// long that a problem of them would fill the memory. Memory: the different wastes of buffers in use.
class RunningBound {
 public:
  // `grains`: of all buffers to come; with fewer or smaller ones the bound is lower.
  explicit RunningBound(const Grains& grains);

  void Start(Bytes size, Bytes alignment);
  // Of one that has started; before those that start at the same tick.
  void Stop(Bytes size, Bytes alignment);
  Bytes bound() const { return Bytes(bound_); }

 private:
  // Of the buffers aligned to a grain.
  struct Aligned {
    int64_t grain;
    int64_t room = 0;                    // what those in use need
    std::map<int64_t, int64_t> slack{};  // how many of them waste how much
  };

  std::vector<Aligned> aligned_;
  int64_t bound_ = 0;
};

// slab / bound - 1, and 0 when both are 0.
double Gap(Bytes slab, Bytes bound);

}  // namespace reprise::planner
