#include "planner/part.h"

namespace reprise::planner {
namespace {

// The slot of the part in which each slot of the whole lies: a new one begins where a start follows an end.
std::vector<int32_t> JoinedSlots(const Instance& whole, std::span<const int32_t> buffers) {
  std::vector<uint8_t> starts(whole.slots + 1, 0);
  std::vector<uint8_t> ends(whole.slots + 1, 0);
  for (int32_t buffer : buffers) {
    for (const Range& range : whole.ranges(buffer)) starts[range.begin] = ends[range.end] = 1;
  }
  std::vector<int32_t> joined(whole.slots);
  bool after_end = false;
  for (int32_t slot = 0, count = 0; slot < whole.slots; ++slot) {
    after_end |= ends[slot] != 0;
    if (after_end && starts[slot] != 0) {
      ++count;
      after_end = false;
    }
    joined[slot] = count;
  }
  return joined;
}

}  // namespace

Part PartOf(const Instance& whole, std::span<const int32_t> buffers, std::span<const int64_t> pinned) {
  Part part;
  part.buffers.assign(buffers.begin(), buffers.end());
  Instance& instance = part.instance;
  const std::vector<int32_t> joined = JoinedSlots(whole, buffers);
  instance.slots = whole.slots == 0 ? 0 : joined.back() + 1;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int32_t buffer = buffers[i];
    instance.size.push_back(whole.size[buffer]);
    instance.alignment.push_back(whole.alignment[buffer]);
    instance.pinned.push_back(pinned[i]);
    const int32_t last = whole.end[buffer] - 1;  // past the end of the cycle if the lifetime wraps
    const bool wraps = last >= whole.slots;
    instance.begin.push_back(joined[whole.begin[buffer]]);
    instance.end.push_back(wraps ? instance.slots + joined[last - whole.slots] + 1 : joined[last] + 1);
    instance.cyclic |= wraps;
    instance.first_range.push_back(static_cast<int32_t>(instance.all_ranges.size()));
    for (const Range& range : whole.ranges(buffer)) {
      instance.all_ranges.push_back({joined[range.begin], joined[range.end - 1] + 1});
    }
  }
  instance.first_range.push_back(static_cast<int32_t>(instance.all_ranges.size()));
  return part;
}

}  // namespace reprise::planner
