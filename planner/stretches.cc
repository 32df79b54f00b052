#include "planner/stretches.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace reprise::planner {
namespace {

constexpr int32_t kNoSlot = -1;
constexpr int32_t kShareOfLeast = 8;  // that is worth a stretch where nothing crosses its end

// What crosses the boundary before each slot.
struct Boundaries {
  explicit Boundaries(const Instance& instance)
      : begun(instance.slots + 1, 0), crossing(instance.slots + 1, 0), bytes(instance.slots + 1, 0) {
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      for (const Range& range : instance.ranges(i)) {
        ++begun[range.begin + 1];
        ++crossing[range.begin + 1];
        --crossing[range.end];
        bytes[range.begin + 1] += instance.size[i];
        bytes[range.end] -= instance.size[i];
      }
    }
    for (int32_t slot = 1; slot <= instance.slots; ++slot) {
      begun[slot] += begun[slot - 1];
      crossing[slot] += crossing[slot - 1];
      bytes[slot] += bytes[slot - 1];
    }
  }

  std::vector<int32_t> begun;     // ranges that begin before it
  std::vector<int32_t> crossing;  // ranges in use on both sides
  std::vector<int64_t> bytes;     // of these
};

}  // namespace

std::vector<int32_t> CutWhereQuiet(const Instance& instance, int32_t least, int32_t most) {
  const Boundaries at(instance);
  std::vector<int32_t> cuts = {0};
  int32_t quietest = kNoSlot;
  for (int32_t slot = 1; slot < instance.slots; ++slot) {
    const int32_t begun = at.begun[slot] - at.begun[cuts.back()];
    if (at.crossing[slot] == 0 && begun >= least / kShareOfLeast) {
      cuts.push_back(slot);
      quietest = kNoSlot;
      continue;
    }
    if (begun > most && quietest != kNoSlot) {
      slot = quietest;
      cuts.push_back(std::exchange(quietest, kNoSlot));
      continue;
    }
    if (begun < least || at.crossing[slot] > begun) continue;
    if (quietest == kNoSlot || at.bytes[slot] < at.bytes[quietest]) quietest = slot;
  }
  cuts.push_back(instance.slots);
  return cuts;
}

Stretches::Stretches(const Instance& instance, std::vector<int32_t> cuts) : cuts_(std::move(cuts)) {
  // Counted first and then filled in: one array for all lists.
  for (Lists* lists : {&inside_, &across_}) lists->first.assign(count() + 2, 0);
  const auto count = [](Lists& lists) { return [&](int32_t k, int32_t) { ++lists.first[k + 2]; }; };
  ForEach(instance, count(inside_), count(across_));
  for (Lists* lists : {&inside_, &across_}) {
    std::partial_sum(lists->first.begin(), lists->first.end(), lists->first.begin());
    lists->buffers.resize(lists->first.back());
  }
  const auto fill = [](Lists& lists) {
    return [&](int32_t k, int32_t i) { lists.buffers[lists.first[k + 1]++] = i; };
  };
  ForEach(instance, fill(inside_), [&](int32_t k, int32_t i) {
    fill(across_)(k, i);
    if (shared_.empty() || shared_.back() != i) shared_.push_back(i);
  });
}

template <typename Inside, typename Across>
void Stretches::ForEach(const Instance& instance, Inside inside, Across across) const {
  std::vector<int32_t> stretch_of(instance.slots);
  for (int32_t k = 0; k < count(); ++k) {
    std::fill(stretch_of.begin() + cuts_[k], stretch_of.begin() + cuts_[k + 1], k);
  }
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    const std::span<const Range> ranges = instance.ranges(i);
    if (ranges.empty()) continue;
    const int32_t first = stretch_of[ranges.front().begin];
    if (instance.is_free(i) && stretch_of[ranges.back().end - 1] == first) {
      inside(first, i);
      continue;
    }
    int32_t next = first;  // the first stretch that does not have it yet
    for (const Range& range : ranges) {
      next = std::max(next, stretch_of[range.begin]);
      for (; next <= stretch_of[range.end - 1]; ++next) across(next, i);
    }
  }
}

}  // namespace reprise::planner
