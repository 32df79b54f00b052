// Who lies where, told slot by slot, by one word of bits for up to 64 slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// The slots are cut into words, runs of up to 64 of them. What takes a part of a word has an entry there: its
// addresses, and a bit for each slot. Who covers a word has none, so that entries are few: one a word for
// each range that begins or ends within it. Where many do, words are shorter.
class SlotWords {
 public:
  // Some of a word's slots, but not all.
  struct Part {
    int32_t word;
    uint64_t slots;
  };

  explicit SlotWords(const Instance& instance);

  int32_t count() const { return static_cast<int32_t>(begin_.size()) - 1; }
  bool has_parts(int32_t word) const { return begin_[word + 1] - begin_[word] > 1; }

  // The words that `slots` covers; the rest of it is added to `parts`, which is to be empty before the first
  // range of a buffer. Its ranges come in ascending order: those in one word are one part.
  Range Split(Range slots, std::vector<Part>& parts) const;

  void Clear() { std::fill(taken_.begin(), taken_.end(), 0); }

  // Takes the addresses [begin, end) in the slots of `part`. There is room for each buffer of the instance
  // once.
  void Insert(const Part& part, int64_t begin, int64_t end);

  // Ascending by `begin`. Those that share no slot may overlap.
  struct Entry {
    int64_t begin;
    int64_t end;
    uint64_t slots;
  };
  // A walk to ever higher addresses. Invalid after an Insert or a Clear.
  struct Cursor {
    const Entry* next;
    const Entry* last;
    uint64_t slots;
  };
  Cursor Begin(const Part& part) const {
    const Entry* first = entries_.data() + first_[part.word];
    return {first, first + taken_[part.word], part.slots};
  }

  // The least multiple of `alignment` from `address` (one itself) on where `size` bytes are free in the
  // cursor's slots. The cursor must not have been used for a higher address.
  static int64_t Leap(Cursor& cursor, int64_t address, int64_t size, int64_t alignment) {
    const Entry* next = cursor.next;
    for (; next != cursor.last && next->begin - address < size; ++next) {
      // Whether two lifetimes share a slot is hard to predict: a mask takes the place of a branch.
      const int64_t end = next->end & -static_cast<int64_t>((next->slots & cursor.slots) != 0);
      if (alignment == 1) {
        address = std::max(address, end);
      } else if (end > address) {
        address = (end + alignment - 1) / alignment * alignment;
      }
    }
    cursor.next = next;
    return address;
  }

  // The highest end of what is ahead of the cursor in its slots; 0 where there is nothing.
  static int64_t Top(const Cursor& cursor) {
    int64_t top = 0;
    for (const Entry* entry = cursor.next; entry != cursor.last; ++entry) {
      if ((entry->slots & cursor.slots) != 0) top = std::max(top, entry->end);
    }
    return top;
  }

 private:
  void AddPart(int32_t word, int32_t begin, int32_t end, std::vector<Part>& parts) const;

  std::vector<int32_t> begin_;    // the first slot of each word, and one past the last slot
  std::vector<int32_t> word_of_;  // by slot
  std::vector<int32_t> first_;    // of the entries of each word
  std::vector<int32_t> taken_;    // entries of each word
  std::vector<Entry> entries_;
};

}  // namespace reprise::planner
