#include "planner/arcs.h"

namespace reprise::planner {
namespace {

bool HasGaps(const Instance& instance, int32_t buffer) {
  int32_t in_use = 0;
  for (const Range& range : instance.ranges(buffer)) in_use += range.end - range.begin;
  return in_use < instance.length(buffer);
}

}  // namespace

std::vector<Arc> ArcsOf(const Instance& instance) {
  std::vector<Arc> arcs;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i) && !HasGaps(instance, i))
      arcs.push_back({instance.begin[i], instance.end[i], instance.size[i]});
  }
  return arcs;
}

}  // namespace reprise::planner
