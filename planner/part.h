// A part of an instance, as an instance of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

struct Part {
  Instance instance;
  std::vector<int32_t> buffers;  // buffer i of `instance` is buffers[i] of the whole
};

// Of `whole`, only `buffers`; `pinned` says where each of them lies, or Instance::kFree. Slots that only
// other buffers tell apart are joined, so that work on the part costs what the part is worth. O(buffers of
// the part + slots of the whole).
Part PartOf(const Instance& whole, std::span<const int32_t> buffers, std::span<const int64_t> pinned);

}  // namespace reprise::planner
