#include "planner/exact_state.h"

#include <algorithm>
#include <bit>

namespace reprise::planner {

ExactState::ExactState(const Instance& instance)
    : size_(instance.size), alignment_(instance.alignment), obstacles_(instance.buffers()) {
  free_ = FreeBuffers(instance);
  ListSlots(instance);
  ListConflicts(instance);
  floor_.resize(instance.buffers());
  placed_.resize(instance.buffers());
  raised_.reserve(instance.buffers() * 8);
  placed_order_.reserve(free_.size());
}

void ExactState::ListSlots(const Instance& instance) {
  std::vector<int32_t> members(instance.slots + 1, 0);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    first_slot_.push_back(static_cast<int32_t>(slot_list_.size()));
    if (!instance.is_free(i)) continue;
    for (const Range& range : instance.ranges(i)) {
      for (int32_t slot = range.begin; slot < range.end; ++slot) {
        slot_list_.push_back(slot);
        ++members[slot + 1];
      }
    }
  }
  first_slot_.push_back(static_cast<int32_t>(slot_list_.size()));
  for (int32_t slot = 0; slot < instance.slots; ++slot) members[slot + 1] += members[slot];
  first_member_ = std::move(members);
  members_.resize(slot_list_.size());
  member_entry_.resize(slot_list_.size());
  position_.resize(slot_list_.size());
  count_.resize(instance.slots);
  load_.resize(instance.slots);
  awaiting_.resize(instance.slots / 64 + 1);
}

void ExactState::ListConflicts(const Instance& instance) {
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    first_conflict_.push_back(static_cast<int32_t>(conflict_list_.size()));
    if (!instance.is_free(i)) continue;
    for (int32_t k = 0; k < instance.buffers(); ++k) {
      if (k == i || !ShareSlot(instance.ranges(i), instance.ranges(k))) continue;
      if (instance.is_free(k)) conflict_list_.push_back(k);
      if (instance.is_pinned(k))
        obstacles_.Insert(i, instance.pinned[k], instance.pinned[k] + instance.size[k]);
    }
  }
  first_conflict_.push_back(static_cast<int32_t>(conflict_list_.size()));
}

void ExactState::Reset(int64_t capacity) {
  capacity_ = capacity;
  std::fill(placed_.begin(), placed_.end(), 0);
  std::fill(load_.begin(), load_.end(), 0);
  std::fill(count_.begin(), count_.end(), 0);
  for (int32_t buffer : free_) {
    for (int32_t entry = first_slot_[buffer]; entry < first_slot_[buffer + 1]; ++entry) {
      const int32_t slot = slot_list_[entry];
      position_[entry] = first_member_[slot] + count_[slot]++;
      members_[position_[entry]] = buffer;
      member_entry_[position_[entry]] = entry;
      load_[slot] += size_[buffer];
      Await(slot);
    }
    floor_[buffer] = Fit(buffer, 0);
  }
  raised_.clear();
  placed_order_.clear();
  looks_ += static_cast<int64_t>(slot_list_.size() + free_.size());
}

// The lowest offset of at least `offset` that is aligned and clear of obstacles.
int64_t ExactState::Fit(int32_t buffer, int64_t offset) const {
  IntervalLists::Cursor obstacles = obstacles_.Begin(buffer);
  int64_t left = kNever;
  const int64_t alignment = alignment_[buffer];
  offset = IntervalLists::Leap(obstacles, RoundUpTo(offset, alignment), size_[buffer], alignment, left);
  looks_ += kNever - left;
  return offset;
}

void ExactState::Raise(int32_t buffer, int64_t floor) {
  if (floor_[buffer] >= floor) return;
  raised_.push_back({buffer, floor_[buffer]});
  floor_[buffer] = Fit(buffer, floor);
  for (int32_t slot : slots_of(buffer)) Await(slot);
}

void ExactState::Place(int32_t buffer) {
  Leave(buffer);
  const int64_t end = floor_end(buffer);
  for (int32_t other : conflicts_of(buffer)) {
    if (!placed(other) && floor_[other] < end) Raise(other, end);
  }
  looks_ += static_cast<int64_t>(conflicts_of(buffer).size());
}

bool ExactState::Reject(int32_t buffer) {
  const int64_t rest = Rest(buffer);
  if (rest == kNever) return false;
  Raise(buffer, rest);
  return true;
}

int64_t ExactState::Rest(int32_t buffer) const {
  int64_t rest = kNever;
  for (int32_t other : conflicts_of(buffer)) {
    if (!placed(other)) rest = std::min(rest, floor_end(other));
  }
  looks_ += static_cast<int64_t>(conflicts_of(buffer).size());
  return rest;
}

void ExactState::Leave(int32_t buffer) {
  placed_[buffer] = 1;
  placed_order_.push_back(buffer);
  for (int32_t entry = first_slot_[buffer]; entry < first_slot_[buffer + 1]; ++entry) {
    const int32_t slot = slot_list_[entry];
    load_[slot] -= size_[buffer];
    const int32_t at = position_[entry];
    const int32_t last = first_member_[slot] + --count_[slot];
    std::swap(members_[at], members_[last]);
    std::swap(member_entry_[at], member_entry_[last]);
    position_[member_entry_[at]] = at;
    position_[entry] = last;
    Await(slot);
  }
}

// The entries behind the unplaced ones lie where Leave() put them: taking them back in needs no swap.
void ExactState::Return(int32_t buffer) {
  placed_[buffer] = 0;
  for (int32_t slot : slots_of(buffer)) {
    load_[slot] += size_[buffer];
    ++count_[slot];
  }
}

void ExactState::Undo(Mark mark) {
  for (; raised_.size() > mark.raised; raised_.pop_back())
    floor_[raised_.back().buffer] = raised_.back().from;
  for (; placed_order_.size() > mark.placed; placed_order_.pop_back()) Return(placed_order_.back());
}

bool ExactState::Propagate(bool not_first) {
  for (size_t word = 0; word < awaiting_.size();) {
    if (awaiting_[word] == 0) {
      ++word;
      continue;
    }
    const int32_t slot = static_cast<int32_t>(word * 64) + std::countr_zero(awaiting_[word]);
    awaiting_[word] &= awaiting_[word] - 1;
    const size_t raised = raised_.size();
    if (!PropagateSlot(slot, not_first)) {
      failed_slot_ = slot;
      std::fill(awaiting_.begin(), awaiting_.end(), 0);
      return false;
    }
    if (raised_.size() != raised) word = 0;
  }
  return true;
}

// Whoever is the lowest of the slot has all others of it above him: his floor plus the load must fit. Who
// does not fit that way lies on another one, and so not below the lowest end of those who do.
bool ExactState::PropagateSlot(int32_t slot, bool not_first) {
  const std::span<const int32_t> unplaced = unplaced_in(slot);
  if (unplaced.empty()) return true;
  looks_ += static_cast<int64_t>(unplaced.size());
  const int64_t highest_first = capacity_ - load_[slot];
  // Without branches, which would be mispredicted half of the time: this loop is where most of the time goes.
  const int64_t* const floors = floor_.data();
  const int64_t* const sizes = size_.data();
  int64_t least_end = kNever;
  int64_t lowest_other = kNever;
  for (int32_t buffer : unplaced) {
    const int64_t floor = floors[buffer];
    const int64_t end = floor + sizes[buffer];
    const bool can_be_first = floor <= highest_first;
    least_end = std::min(least_end, can_be_first ? end : kNever);
    lowest_other = std::min(lowest_other, can_be_first ? kNever : floor);
  }
  if (least_end == kNever) return false;
  if (lowest_other >= least_end || !not_first) return true;
  for (int32_t buffer : unplaced) {
    if (floor_[buffer] > highest_first && floor_[buffer] < least_end) Raise(buffer, least_end);
  }
  return true;
}

}  // namespace reprise::planner
