// Many sorted lists of address intervals in one array.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace reprise::planner {

// Each list is a set of addresses, kept as disjoint half-open intervals in ascending order with a hole
// between any two. The intervals of all lists lie in one array, in blocks of 2^k; a list that outgrows its
// block moves to one twice as large, and the old one is used again. Clear() and Reset() cost one pass over
// the heads, so that the same memory serves many runs.
class IntervalLists {
 public:
  struct Interval {
    int64_t begin;
    int64_t end;
  };

  explicit IntervalLists(int32_t lists = 0) : heads_(lists) {}

  void Clear() { Reset(static_cast<int32_t>(heads_.size())); }

  // Forgets all and has so many lists.
  void Reset(int32_t lists) {
    heads_.assign(lists, Head{});
    for (auto& blocks : unused_) blocks.clear();
    used_ = 0;
  }

  bool Empty(int32_t list) const { return heads_[list].count == 0; }

  // Adds the addresses [begin, end).
  void Insert(int32_t list, int64_t begin, int64_t end) {
    Interval* const first = At(heads_[list]);
    Interval* const last = first + heads_[list].count;
    // [low, high) are the intervals that the new one touches and swallows.
    Interval* const low = std::partition_point(first, last, [&](const Interval& i) { return i.end < begin; });
    Interval* high = low;
    while (high != last && high->begin <= end) ++high;
    if (low == high) {
      InsertAt(list, static_cast<uint32_t>(low - first), {begin, end});
      return;
    }
    low->begin = std::min(low->begin, begin);
    low->end = std::max((high - 1)->end, end);
    std::memmove(low + 1, high, (last - high) * sizeof(Interval));
    heads_[list].count -= static_cast<uint32_t>(high - low - 1);
  }

  // A place in a list, for a walk to ever higher addresses. Invalid after an Insert or a Clear.
  struct Cursor {
    const Interval* next;
    const Interval* last;
  };
  Cursor Begin(int32_t list) const {
    const Interval* first = At(heads_[list]);
    return {first, first + heads_[list].count};
  }

  // The least multiple of `alignment` from `address` (one itself) on where `size` bytes are not in the list.
  // The cursor must not have been used for a higher address. Every interval on the way costs one of `looks`;
  // where none is left, the walk may have ended before.
  static int64_t Leap(Cursor& cursor, int64_t address, int64_t size, int64_t alignment, int64_t& looks) {
    if (cursor.next == cursor.last || cursor.next->begin - address >= size) return address;
    SkipUpTo(cursor, address);
    const Interval* next = cursor.next;
    const Interval* const farthest = next + std::min<int64_t>(cursor.last - next, looks);
    for (; next != farthest && next->begin - address < size; ++next) {
      if (next->end <= address) continue;
      address = alignment == 1 ? next->end : (next->end + alignment - 1) / alignment * alignment;
    }
    looks -= next - cursor.next;
    cursor.next = next;
    return address;
  }
  static int64_t Leap(Cursor& cursor, int64_t address, int64_t size, int64_t alignment) {
    int64_t looks = std::numeric_limits<int64_t>::max();
    return Leap(cursor, address, size, alignment, looks);
  }

 private:
  struct Head {
    uint32_t at = 0;  // of the list's block in intervals_
    uint32_t count = 0;
    uint32_t log_capacity = kNoBlock;
  };
  static constexpr uint32_t kNoBlock = ~0u;

  // To the first interval that ends above `address`, by steps that double: most are short.
  static void SkipUpTo(Cursor& cursor, int64_t address) {
    const Interval* low = cursor.next;
    for (std::ptrdiff_t step = 1; low != cursor.last && low->end <= address; step *= 2) {
      cursor.next = low + 1;
      low += std::min(step, cursor.last - low);
    }
    cursor.next = std::partition_point(cursor.next, low, [&](const Interval& i) { return i.end <= address; });
  }

  Interval* At(const Head& head) { return intervals_.data() + head.at; }
  const Interval* At(const Head& head) const { return intervals_.data() + head.at; }

  void InsertAt(int32_t list, uint32_t index, Interval interval) {
    Head& head = heads_[list];
    if (head.log_capacity == kNoBlock || head.count == 1u << head.log_capacity) Grow(head);
    Interval* const place = At(head) + index;
    std::memmove(place + 1, place, (head.count - index) * sizeof(Interval));
    *place = interval;
    ++head.count;
  }

  void Grow(Head& head) {
    const uint32_t log_capacity = head.log_capacity == kNoBlock ? 0 : head.log_capacity + 1;
    uint32_t at;
    if (unused_[log_capacity].empty()) {
      at = static_cast<uint32_t>(used_);
      used_ += size_t{1} << log_capacity;
      if (used_ > intervals_.size()) intervals_.resize(std::max(used_, 2 * intervals_.size()));
    } else {
      at = unused_[log_capacity].back();
      unused_[log_capacity].pop_back();
    }
    std::memcpy(intervals_.data() + at, At(head), head.count * sizeof(Interval));
    if (head.log_capacity != kNoBlock) unused_[head.log_capacity].push_back(head.at);
    head.at = at;
    head.log_capacity = log_capacity;
  }

  std::vector<Head> heads_;
  std::vector<Interval> intervals_;
  size_t used_ = 0;                               // of these
  std::array<std::vector<uint32_t>, 32> unused_;  // blocks by the logarithm of their capacity
};

}  // namespace reprise::planner
