#include "replay/ranges.h"

#include <algorithm>

namespace reprise::replay {

Ranges::Ranges(uint32_t begin, uint32_t end)
    : begin_(begin),
      end_(end),
      barrier_(begin),
      heads_(((end - begin) >> kCellBits) + 1),
      starts_(end - begin) {
  if (!ok()) return;
  ranges_.reserve(1 << 14);
  infos_.reserve(1 << 14);
  unused_.reserve(1 << 14);
  Rebuild();
}

void Ranges::Link(Index i) {
  Range& range = ranges_[i];
  Lists& lists = lists_[static_cast<size_t>(SideOf(range))];
  const int c = ClassOf(range.units);
  range.list_before = kNone;
  range.list_after = lists.head[c];
  if (range.list_after != kNone) ranges_[range.list_after].list_before = i;
  lists.head[c] = i;
  const auto word = static_cast<size_t>(c) / 64;
  lists.any[word] |= uint64_t{1} << (c % 64);
  lists.any_word |= uint32_t{1} << word;
}

void Ranges::Unlink(Index i) {
  const Range& range = ranges_[i];
  if (range.list_after != kNone) ranges_[range.list_after].list_before = range.list_before;
  if (range.list_before != kNone) {
    ranges_[range.list_before].list_after = range.list_after;
    return;
  }
  Lists& lists = lists_[static_cast<size_t>(SideOf(range))];
  const int c = ClassOf(range.units);
  lists.head[c] = range.list_after;
  if (range.list_after != kNone) return;
  const auto word = static_cast<size_t>(c) / 64;
  lists.any[word] &= ~(uint64_t{1} << (c % 64));
  if (lists.any[word] == 0) lists.any_word &= ~(uint32_t{1} << word);
}

void Ranges::GrowRecords() {
  infos_.resize(ranges_.size() + 1);
  ranges_.emplace_back();
  unused_.reserve(ranges_.capacity());  // so that giving a record back never allocates
  unused_.push_back(static_cast<Index>(ranges_.size() - 1));
}

// Puts free range [begin, end) on record after neighbour `before`; the caller links its successor to it.
Ranges::Index Ranges::AddFree(uint32_t begin, uint32_t end, Index before) {
  const Index i = NewRecord();
  Range& range = ranges_[i];
  range.begin = begin;
  range.units = end - begin;
  range.before = before;
  range.after = kNone;
  if (before != kNone) ranges_[before].after = i;
  PutOnRecord(i);
  Link(i);
  return i;
}

// Turns [begin, begin + units) of a free range into a live block. What begins where the free range began
// keeps its record: its bit and its neighbour before stay as they are.
Ranges::Index Ranges::Carve(Index free, uint32_t begin, uint32_t units) {
  while (unused_.size() < 2) GrowRecords();  // may throw, which from here on nothing does
  const uint32_t end = begin + units;
  const uint32_t free_end = ranges_[free].end();
  const Index after = ranges_[free].after;
  Unlink(free);
  Index block = free;
  if (ranges_[free].begin < begin) {
    ranges_[free].units = begin - ranges_[free].begin;
    Link(free);
    block = NewRecord();
    ranges_[block].begin = begin;
    ranges_[block].before = free;
    ranges_[free].after = block;
    PutOnRecord(block);
  }
  Index next = after;
  if (end < free_end) {
    next = AddFree(end, free_end, block);
    ranges_[next].after = after;
  }
  Range& range = ranges_[block];
  range.units = units;
  range.after = next;
  range.live = true;
  if (after != kNone) ranges_[after].before = next == after ? block : next;
  return block;
}

Ranges::Index Ranges::TakeTracked(uint32_t begin, uint32_t units) {
  const Index i = AtOrBefore(begin);
  if (ranges_[i].live || ranges_[i].end() < begin + units) return kNone;
  const Index block = Carve(i, begin, units);
  if (begin < barrier_ && --until_untracked_ <= 0) Untrack();
  return block;
}

void Ranges::ReleaseTracked(Index block) {
  Range& range = ranges_[block];
  range.live = false;
  const Index after = range.after;
  if (after != kNone && !ranges_[after].live && ranges_[after].begin != barrier_) {
    Unlink(after);
    range.units += ranges_[after].units;
    range.after = ranges_[after].after;
    if (range.after != kNone) ranges_[range.after].before = block;
    TakeOffRecord(after);
  }
  const Index before = range.before;
  if (before != kNone && !ranges_[before].live && range.begin != barrier_) {
    Unlink(before);
    ranges_[before].units += range.units;
    ranges_[before].after = range.after;
    if (range.after != kNone) ranges_[range.after].before = before;
    TakeOffRecord(block);
    block = before;
  }
  Link(block);
}

void Ranges::SetBarrier(uint32_t barrier) {
  barrier_ = std::clamp(barrier, begin_, end_);
  ForEachLive([this](const Range& range, const BlockInfo&) {
    if (range.begin < barrier_ && barrier_ < range.end()) barrier_ = range.end();
  });
  tracked_ = false;
  Rebuild();
}

void Ranges::Track() {
  if (!tracked_ && barrier_ > begin_) {
    tracked_ = true;
    Rebuild();
  }
  until_untracked_ = static_cast<int64_t>(ranges_.size());
}

void Ranges::Untrack() {
  tracked_ = false;
  Rebuild();
}

// Drops every free range from the record and puts those back that belong there: above the barrier, and below
// it while tracked.
void Ranges::Rebuild() {
  for (Lists& lists : lists_) {
    lists.head.fill(kNone);
    lists.any.fill(0);
    lists.any_word = 0;
  }
  uint32_t gap = tracked_ ? begin_ : barrier_;  // where the next free range would begin
  Index last = kNone;
  const auto fill = [&](uint32_t end) {
    if (gap < barrier_ && barrier_ < end) {
      last = AddFree(gap, barrier_, last);
      gap = barrier_;
    }
    if (gap < end) last = AddFree(gap, end, last);
  };
  ForEachOnRecord([&](Index i) {
    if (!ranges_[i].live) {
      TakeOffRecord(i);
      return;
    }
    if (ranges_[i].begin < barrier_ && !tracked_) return;
    fill(ranges_[i].begin);
    ranges_[i].before = last;
    ranges_[i].after = kNone;
    if (last != kNone) ranges_[last].after = i;
    last = i;
    gap = ranges_[i].end();
  });
  fill(end_);
}

bool Ranges::Consistent() const {
  bool good = true;
  uint32_t at = begin_;
  Index last = kNone;
  int64_t free_count = 0;
  ForEachOnRecord([&](Index i) {
    const Range& range = ranges_[i];
    const bool dense = range.begin >= barrier_ || tracked_;
    if (range.begin < at || range.units == 0) good = false;
    if (range.begin < barrier_ && barrier_ < range.end()) good = false;
    if (dense && range.begin != std::max(at, tracked_ ? begin_ : barrier_)) good = false;
    if (dense && last != kNone && (ranges_[last].after != i || range.before != last)) good = false;
    if (dense && last != kNone && !range.live && !ranges_[last].live && range.begin != barrier_) good = false;
    if (!dense && !range.live) good = false;
    if (!range.live) ++free_count;
    at = range.end();
    if (dense) last = i;
  });
  int64_t linked = 0;
  for (const Lists& lists : lists_) {
    for (int c = 0; c < kClasses; ++c) {
      for (Index i = lists.head[c]; i != kNone; i = ranges_[i].list_after) {
        if (ranges_[i].live || ClassOf(ranges_[i].units) != c) good = false;
        ++linked;
      }
    }
  }
  return good && linked == free_count;
}

}  // namespace reprise::replay
