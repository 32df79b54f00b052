#include "replay/ranges.h"

#include <bit>

namespace reprise::replay {

Ranges::Ranges(uint32_t begin, uint32_t end)
    : begin_(begin), barrier_(begin), at_(end - begin), starts_(end - begin) {
  for (Lists& lists : lists_) {
    lists.head.fill(kNone);
    lists.any.fill(0);
  }
  if (!ok()) return;
  ranges_.reserve(1 << 14);
  unused_.reserve(1 << 14);
  const Index i = NewRecord();
  ranges_[i].begin = begin;
  ranges_[i].units = end - begin;
  Insert(i, kNone, kNone);
  Link(i);
}

int Ranges::ClassOf(uint32_t units) {
  if (units < kSteps) return static_cast<int>(units);
  const int shift = std::bit_width(units) - 1 - kStepBits;
  return (shift + 1) * kSteps + static_cast<int>(units >> shift) - kSteps;
}

int Ranges::NextClass(const Lists& lists, int from) const {
  if (from >= kClasses) return -1;
  size_t word = static_cast<size_t>(from) / 64;
  uint64_t bits = lists.any[word] & (~uint64_t{0} << (from % 64));
  while (bits == 0) {
    if (++word == lists.any.size()) return -1;
    bits = lists.any[word];
  }
  return static_cast<int>(word * 64) + std::countr_zero(bits);
}

void Ranges::Link(Index i) {
  Range& range = ranges_[i];
  Lists& lists = lists_[static_cast<size_t>(GroupOf(range))];
  const int c = ClassOf(range.units);
  range.list_before = kNone;
  range.list_after = lists.head[c];
  if (range.list_after != kNone) ranges_[range.list_after].list_before = i;
  lists.head[c] = i;
  lists.any[static_cast<size_t>(c) / 64] |= uint64_t{1} << (c % 64);
}

void Ranges::Unlink(Index i) {
  const Range& range = ranges_[i];
  if (range.list_after != kNone) ranges_[range.list_after].list_before = range.list_before;
  if (range.list_before != kNone) {
    ranges_[range.list_before].list_after = range.list_after;
    return;
  }
  Lists& lists = lists_[static_cast<size_t>(GroupOf(range))];
  const int c = ClassOf(range.units);
  lists.head[c] = range.list_after;
  if (range.list_after == kNone) lists.any[static_cast<size_t>(c) / 64] &= ~(uint64_t{1} << (c % 64));
}

Ranges::Index Ranges::NewRecord() {
  if (unused_.empty()) {
    ranges_.emplace_back();
    unused_.reserve(ranges_.capacity());  // so that Remove never allocates
    return static_cast<Index>(ranges_.size() - 1);
  }
  const Index i = unused_.back();
  unused_.pop_back();
  ranges_[i] = Range{};
  return i;
}

// Puts record i, whose begin is set, between two neighbours.
void Ranges::Insert(Index i, Index before, Index after) {
  Range& range = ranges_[i];
  range.before = before;
  range.after = after;
  (before == kNone ? first_ : ranges_[before].after) = i;
  if (after != kNone) ranges_[after].before = i;
  at_[range.begin - begin_] = i;
  starts_.Insert(range.begin - begin_);
}

void Ranges::Remove(Index i) {
  const Range& range = ranges_[i];
  (range.before == kNone ? first_ : ranges_[range.before].after) = range.after;
  if (range.after != kNone) ranges_[range.after].before = range.before;
  starts_.Erase(range.begin - begin_);
  unused_.push_back(i);
}

// Turns [begin, begin + units) of an unlinked free range into a live block and links what is left on either
// side.
Ranges::Index Ranges::Carve(Index free, uint32_t begin, uint32_t units) {
  const uint32_t end = begin + units;
  Index block = free;
  if (ranges_[free].begin < begin) {
    block = NewRecord();
    ranges_[block].begin = begin;
    ranges_[block].units = ranges_[free].end() - begin;
    ranges_[free].units = begin - ranges_[free].begin;
    Insert(block, free, ranges_[free].after);
    Link(free);
  }
  if (end < ranges_[block].end()) {
    const Index rest = NewRecord();
    ranges_[rest].begin = end;
    ranges_[rest].units = ranges_[block].end() - end;
    ranges_[block].units = units;
    Insert(rest, block, ranges_[block].after);
    Link(rest);
  }
  ranges_[block].live = true;
  return block;
}

Ranges::Index Ranges::Around(uint32_t unit) const {
  return at_[static_cast<size_t>(starts_.AtOrBefore(unit - begin_))];
}

Ranges::Index Ranges::TakeAt(uint32_t begin, uint32_t units) {
  const Index i = Around(begin);
  const Range& range = ranges_[i];
  if (range.live || range.end() < begin + units) return kNone;
  Unlink(i);
  return Carve(i, begin, units);
}

// The smallest range that fits among the first kLook of the first class that has one.
Ranges::Index Ranges::Best(const Lists& lists, uint32_t units, uint32_t align) const {
  for (int c = NextClass(lists, ClassOf(units)); c >= 0; c = NextClass(lists, c + 1)) {
    Index best = kNone;
    int looked = 0;
    for (Index i = lists.head[c]; i != kNone && looked < kLook; i = ranges_[i].list_after, ++looked) {
      const Range& range = ranges_[i];
      const uint64_t aligned = (uint64_t{range.begin} + align - 1) / align * align;
      if (aligned + units > range.end()) continue;
      if (best == kNone || range.units < ranges_[best].units ||
          (range.units == ranges_[best].units && range.begin < ranges_[best].begin)) {
        best = i;
      }
    }
    if (best != kNone) return best;
  }
  return kNone;
}

Ranges::Index Ranges::TakeBest(uint32_t units, uint32_t align, bool below, bool above) {
  Index best = below ? Best(lists_[0], units, align) : kNone;
  if (above) {
    const Index other = Best(lists_[1], units, align);
    if (best == kNone || (other != kNone && ranges_[other].units < ranges_[best].units)) best = other;
  }
  if (best == kNone) return kNone;
  Unlink(best);
  const uint32_t begin = (ranges_[best].begin + align - 1) / align * align;
  return Carve(best, begin, units);
}

// Cuts free range i, not linked, in two at `at` and links both.
void Ranges::SplitFree(Index i, uint32_t at) {
  const Index rest = NewRecord();
  ranges_[rest].begin = at;
  ranges_[rest].units = ranges_[i].end() - at;
  ranges_[i].units = at - ranges_[i].begin;
  Insert(rest, i, ranges_[i].after);
  Link(i);
  Link(rest);
}

Ranges::Index Ranges::Release(Index block) {
  ranges_[block].live = false;
  const Index after = ranges_[block].after;
  if (after != kNone && !ranges_[after].live && ranges_[after].begin != barrier_) {
    Unlink(after);
    ranges_[block].units += ranges_[after].units;
    Remove(after);
  }
  const Index before = ranges_[block].before;
  if (before != kNone && !ranges_[before].live && ranges_[block].begin != barrier_) {
    Unlink(before);
    ranges_[before].units += ranges_[block].units;
    Remove(block);
    block = before;
  }
  if (ranges_[block].begin < barrier_ && barrier_ < ranges_[block].end()) {
    SplitFree(block, barrier_);
  } else {
    Link(block);
  }
  return block;
}

Ranges::Index Ranges::FindLive(uint32_t begin) const {
  const uint32_t unit = begin - begin_;
  if (!starts_.Contains(unit)) return kNone;
  const Index i = at_[unit];
  return ranges_[i].live ? i : kNone;
}

void Ranges::SetBarrier(uint32_t barrier) {
  for (Index i = first_; i != kNone; i = ranges_[i].after) {
    if (!ranges_[i].live) Unlink(i);
  }
  barrier_ = barrier;
  for (Index i = first_; i != kNone; i = ranges_[i].after) {
    if (ranges_[i].live) continue;
    // Heal the cut that the old barrier made.
    for (Index after = ranges_[i].after; after != kNone && !ranges_[after].live; after = ranges_[i].after) {
      ranges_[i].units += ranges_[after].units;
      Remove(after);
    }
    if (ranges_[i].begin < barrier && barrier < ranges_[i].end()) {
      SplitFree(i, barrier);
      i = ranges_[i].after;
    } else {
      Link(i);
    }
  }
}

bool Ranges::Consistent() const {
  uint32_t at = begin_;
  int64_t free_count = 0;
  for (Index i = first_; i != kNone; i = ranges_[i].after) {
    const Range& range = ranges_[i];
    if (range.begin != at || range.units == 0) return false;
    if (!starts_.Contains(at - begin_) || at_[at - begin_] != i) return false;
    if (range.after != kNone) {
      const Range& after = ranges_[range.after];
      if (after.before != i) return false;
      if (!range.live && !after.live && after.begin != barrier_) return false;
    }
    if (!range.live) {
      if (range.begin < barrier_ && barrier_ < range.end()) return false;
      ++free_count;
    }
    at = range.end();
  }
  int64_t linked = 0;
  for (const Lists& lists : lists_) {
    for (int c = 0; c < kClasses; ++c) {
      for (Index i = lists.head[c]; i != kNone; i = ranges_[i].list_after) {
        if (ranges_[i].live || ClassOf(ranges_[i].units) != c) return false;
        ++linked;
      }
    }
  }
  return linked == free_count;
}

}  // namespace reprise::replay
