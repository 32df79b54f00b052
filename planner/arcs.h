// Lifetimes on a ring, as bounds look at them.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// The slots [begin, end) of a ring: from `begin`, below the number of slots, for at most once round.
struct Arc {
  int32_t begin;
  int32_t end;
  int64_t size;
};

// Those of the buffers that are to be laid, without those that have gaps.
std::vector<Arc> ArcsOf(const Instance& instance);

}  // namespace reprise::planner
