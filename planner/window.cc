#include "planner/window.h"

#include <algorithm>

namespace reprise::planner {
namespace {

Range Within(Range range, Range time) {
  return {std::max(range.begin, time.begin), std::min(range.end, time.end)};
}

// Slots of a stretch of time, numbered anew: those that only buffers outside of the window told apart are
// one.
class Renumbering {
 public:
  explicit Renumbering(Range time) : time_(time), marks_(time.end - time.begin + 1, 0) {}

  void Mark(Range range) {
    marks_[range.begin - time_.begin] |= kStart;
    marks_[range.end - time_.begin] |= kEnd;
  }

  // As in Compress: a new slot begins where a start follows an end. To be called when all ranges are marked;
  // returns how many slots there are.
  int32_t Number() {
    slot_.resize(marks_.size());
    int32_t slot = 0;
    bool after_end = false;
    for (size_t at = 0; at < marks_.size(); ++at) {
      after_end |= (marks_[at] & kEnd) != 0;
      if (after_end && (marks_[at] & kStart) != 0) {
        ++slot;
        after_end = false;
      }
      slot_[at] = slot;
    }
    return slot + 1;
  }

  Range Of(Range range) const {
    return {slot_[range.begin - time_.begin], slot_[range.end - 1 - time_.begin] + 1};
  }

 private:
  static constexpr uint8_t kStart = 1, kEnd = 2;
  const Range time_;
  std::vector<uint8_t> marks_;  // by slot
  std::vector<int32_t> slot_;
};

}  // namespace

Window Extract(const Instance& whole, Range time, std::span<const int32_t> free,
               std::span<const int32_t> pinned, std::span<const int64_t> offsets) {
  Window window;
  Instance& part = window.instance;
  Renumbering slots(time);
  const size_t n = free.size() + pinned.size();
  window.buffers.reserve(n);
  for (const auto& buffers : {free, pinned}) {
    window.buffers.insert(window.buffers.end(), buffers.begin(), buffers.end());
  }
  part.first_range.reserve(n + 1);
  part.all_ranges.reserve(n);
  for (auto* column : {&part.size, &part.alignment, &part.pinned}) column->reserve(n);
  for (size_t k = 0; k < n; ++k) {
    const int32_t i = window.buffers[k];
    part.size.push_back(whole.size[i]);
    part.alignment.push_back(whole.alignment[i]);
    part.pinned.push_back(k < free.size() ? Instance::kFree : offsets[i]);
    part.first_range.push_back(static_cast<int32_t>(part.all_ranges.size()));
    for (const Range& range : whole.ranges(i)) {
      const Range within = Within(range, time);
      if (within.begin >= within.end) continue;
      slots.Mark(within);
      part.all_ranges.push_back(within);
    }
  }
  part.first_range.push_back(static_cast<int32_t>(part.all_ranges.size()));
  part.slots = slots.Number();
  for (Range& range : part.all_ranges) range = slots.Of(range);
  part.begin.resize(n);
  part.end.resize(n);
  for (size_t k = 0; k < n; ++k) {
    const std::span<const Range> ranges = part.ranges(static_cast<int32_t>(k));
    if (ranges.empty()) continue;
    part.begin[k] = ranges.front().begin;
    part.end[k] = ranges.back().end;
  }
  return window;
}

}  // namespace reprise::planner
