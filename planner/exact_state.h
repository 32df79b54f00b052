// What the exact search knows at a node: who is not placed yet, and how low each of them may still go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/interval_lists.h"
#include "planner/problem.h"

namespace reprise::planner {

// A state stands for a question of its own: can the unplaced buffers be laid within the capacity, none of
// them below its *floor*? How the state came about plays no part in the answer. If there is an answer, there
// is one in which nobody can be moved down; in it, everybody lies either on his floor or on the end of an
// unplaced buffer that he conflicts with, or where alignment and obstacles let him lie next above one of
// these. All that is done here relies on that:
//
//   Place    the buffer lies on its floor; those that conflict with it get its end as their floor. Allowed
//            if no unplaced buffer can lie beneath it: Rest() > floor
//   Reject   the buffer does not lie on its floor, so it lies on somebody else: Rest() is its new floor
//   Propagate  what follows in single slots
class ExactState {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  // Takes memory quadratic in the buffers.
  explicit ExactState(const Instance& instance);

  // Everything unplaced, floors at the lowest places that obstacles leave. Each slot awaits propagation.
  void Reset(int64_t capacity);

  void Place(int32_t buffer);
  // False: there is nobody whom the buffer could lie on.
  bool Reject(int32_t buffer);
  // Brings the floors up to what the slots imply, to a fixpoint. False: there is no solution; failed_slot()
  // is the slot that showed it.
  bool Propagate(bool not_first);

  // The lowest end of an unplaced buffer that conflicts with this one, fitted; kNever without any.
  int64_t Rest(int32_t buffer) const;

  struct Mark {
    size_t raised;
    size_t placed;
  };
  Mark mark() const { return {raised_.size(), placed_order_.size()}; }
  void Undo(Mark mark);

  int32_t slots() const { return static_cast<int32_t>(load_.size()); }
  bool placed(int32_t buffer) const { return placed_[buffer] != 0; }
  int64_t floor(int32_t buffer) const { return floor_[buffer]; }  // once placed: the offset
  int64_t floor_end(int32_t buffer) const { return floor_[buffer] + size_[buffer]; }
  int64_t capacity() const { return capacity_; }
  int32_t failed_slot() const { return failed_slot_; }
  int64_t load(int32_t slot) const { return load_[slot]; }  // of the unplaced buffers
  std::span<const int32_t> slots_of(int32_t buffer) const {
    return std::span(slot_list_).subspan(first_slot_[buffer], first_slot_[buffer + 1] - first_slot_[buffer]);
  }
  std::span<const int32_t> conflicts_of(int32_t buffer) const {
    return std::span(conflict_list_)
        .subspan(first_conflict_[buffer], first_conflict_[buffer + 1] - first_conflict_[buffer]);
  }
  std::span<const int32_t> unplaced_in(int32_t slot) const {
    return std::span(members_).subspan(first_member_[slot], count_[slot]);
  }
  int64_t looks() const { return looks_; }  // entries of lists looked at so far

 private:
  struct Raised {
    int32_t buffer;
    int64_t from;
  };

  void ListSlots(const Instance& instance);
  void ListConflicts(const Instance& instance);
  int64_t Fit(int32_t buffer, int64_t offset) const;
  void Raise(int32_t buffer, int64_t floor);
  bool PropagateSlot(int32_t slot, bool not_first);
  void Leave(int32_t buffer);
  void Return(int32_t buffer);
  void Await(int32_t slot) { awaiting_[slot >> 6] |= uint64_t{1} << (slot & 63); }

  int64_t capacity_ = 0;
  std::vector<int32_t> free_;  // buffers
  std::vector<int64_t> size_;
  std::vector<int64_t> alignment_;
  // By buffer. Conflicts are with free buffers only; pinned ones are obstacles.
  std::vector<int32_t> first_slot_, slot_list_;
  std::vector<int32_t> first_conflict_, conflict_list_;
  IntervalLists obstacles_;

  std::vector<int64_t> floor_;
  std::vector<char> placed_;
  std::vector<int64_t> load_;
  // By slot, its free buffers, the unplaced ones first, and for each entry which entry of slot_list_ it
  // belongs to; position_ is the way back. Buffers leave by a swap with the last and return in reverse.
  std::vector<int32_t> first_member_, members_, member_entry_, position_, count_;
  std::vector<uint64_t> awaiting_;  // a bit a slot: to be propagated
  std::vector<Raised> raised_;      // to undo
  std::vector<int32_t> placed_order_;
  int32_t failed_slot_ = 0;
  mutable int64_t looks_ = 0;
};

}  // namespace reprise::planner
