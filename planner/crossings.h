// Where a placement hands memory from one lane to another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/types.h"

namespace reprise::planner {

// Bytes [begin, end) taken on one lane and left on another, mostly the same.
struct Use {
  int64_t begin;
  int64_t end;  // > begin
  uint64_t taken_on;
  uint64_t left_on;
};

// `uses` in the order in which they begin; no two overlap in time and bytes. By use: whether a part of its
// bytes is next taken on a lane other than the one that left them, so that an event must be recorded there
// and waited for. When `cyclic`, the first uses follow the last. O(n log n).
std::vector<bool> FindCrossings(std::span<const Use> uses, bool cyclic);

// How many times a buffer of `placement` leaves bytes to another lane. Pinned buffers have no lane and cross
// nothing.
int64_t CountCrossings(const Problem& problem, const Placement& placement);

}  // namespace reprise::planner
