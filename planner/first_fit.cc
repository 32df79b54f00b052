#include "planner/first_fit.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace reprise::planner {
namespace {

constexpr size_t kPollMask = 63;  // buffers between two polls, less one

}  // namespace

FirstFit::FirstFit(const Instance& instance)
    : instance_(instance),
      leaves_(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(instance.slots, 1))))),
      sets_(4 * leaves_),
      seen_(2 * static_cast<size_t>(leaves_), 0) {
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) pinned_.push_back(i);
  }
}

FirstFit::Outcome FirstFit::Place(std::span<const int32_t> order, int64_t limit, Search& search,
                                  std::vector<int64_t>& offsets) {
  offsets = instance_.pinned;
  Clear();
  int64_t steps = 0;  // looked at since the last poll
  for (size_t i = 0; i < order.size(); ++i) {
    if ((i & kPollMask) == kPollMask && search.Stop(std::exchange(steps, 0))) return Outcome::kStopped;
    const int32_t buffer = order[i];
    FindNodes(buffer);
    steps += static_cast<int64_t>(canonical_.size() + above_.size());
    offsets[buffer] = LowestFreeAtNodes(buffer, 0);
    if (offsets[buffer] + instance_.size[buffer] > limit) {
      too_high_ = buffer;
      return Outcome::kTooHigh;
    }
    Insert(buffer, offsets[buffer]);
  }
  search.Stop(steps);
  return Outcome::kComplete;
}

void FirstFit::Clear() {
  sets_.Clear();
  for (int32_t buffer : pinned_) {
    FindNodes(buffer);
    Insert(buffer, instance_.pinned[buffer]);
  }
}

int64_t FirstFit::LowestFree(int32_t buffer, int64_t offset) {
  FindNodes(buffer);
  return LowestFreeAtNodes(buffer, offset);
}

void FirstFit::FindNodes(int32_t buffer) {
  canonical_.clear();
  above_.clear();
  for (const Range& range : instance_.ranges(buffer)) AddRange(range.begin, range.end);
  ++round_;
  for (int32_t node : canonical_) {
    for (node /= 2; node > 0 && seen_[node] != round_; node /= 2) {
      seen_[node] = round_;
      above_.push_back(node);
    }
  }
}

void FirstFit::AddRange(int32_t begin, int32_t end) {
  if (end == instance_.slots) end = leaves_;  // the leaves beyond the last slot are nobody's: fewer nodes
  int32_t low = begin + leaves_;
  int32_t high = end + leaves_;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) canonical_.push_back(low++);
    if (high % 2 == 1) canonical_.push_back(--high);
  }
}

int64_t FirstFit::LowestFreeAtNodes(int32_t buffer, int64_t offset) {
  blockers_.clear();
  for (int32_t node : canonical_) {
    if (!sets_.Empty(Any(node))) blockers_.push_back(sets_.Begin(Any(node)));
  }
  for (int32_t node : above_) {
    if (!sets_.Empty(Cover(node))) blockers_.push_back(sets_.Begin(Cover(node)));
  }
  int64_t address = offset;
  // Go round until no set has asked for a leap since the last one that did.
  size_t quiet = 0;
  for (size_t i = 0; quiet < blockers_.size(); i = i + 1 == blockers_.size() ? 0 : i + 1) {
    const int64_t leapt =
        IntervalLists::Leap(blockers_[i], address, instance_.size[buffer], instance_.alignment[buffer]);
    quiet = leapt == address ? quiet + 1 : 1;
    address = leapt;
  }
  return address;
}

void FirstFit::Insert(int32_t buffer, int64_t offset) {
  const int64_t end = offset + instance_.size[buffer];
  for (int32_t node : canonical_) {
    sets_.Insert(Cover(node), offset, end);
    sets_.Insert(Any(node), offset, end);
  }
  for (int32_t node : above_) sets_.Insert(Any(node), offset, end);
}

}  // namespace reprise::planner
