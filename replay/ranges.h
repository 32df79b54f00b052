// An interval of addresses tiled by live blocks and free ranges.
//
// This is the occupancy check of the arena (law 1): a block is handed out only where nothing is live, so two
// live blocks cannot overlap whatever a plan says. The begin of every range on record is a bit in a BitTree,
// which finds the neighbours of an arbitrary address. Which range it is of is found by its cell, a few units:
// a table of cells is an eighth of one of units, and there is seldom more than one begin in a cell.
//
// Below the barrier lies the plan. There the next place is known, so only live blocks are on record and a
// planned placement is two look-ups and a bit. Everywhere else free ranges are on record too, linked to their
// neighbours in address order, and hang in segregated lists by size (two-level segregated fit: Masmano et al.
// 2004). When a best fit is wanted below the barrier, the free ranges there are put on record first
// ("tracked") and stay so until as many planned placements have passed as there are blocks, so that the
// change costs O(1) a placement.
//
// Glossary
//   unit      256 bytes, the smallest block and the alignment of every one
//   range     a live block, or a maximal run of free units on one side of the barrier
//   barrier   an address that no range spans
//   tracked   free ranges below the barrier are on record
//
// No heap allocation unless more ranges exist than ever before. Not thread-safe: the engine's lock is held
// around every call.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/types.h"
#include "replay/bit_tree.h"
#include "replay/sparse_array.h"

namespace reprise::replay {

inline constexpr Bytes kUnit{256};
// A GiB less than what 32 bits can count in units.
inline constexpr Bytes kLargestRange = kUnit * ((int64_t{1} << 32) - (int64_t{1} << 22));

// What a block takes. A device's blocks all begin at multiples of 512 bytes: what is left below the next one
// could be nobody else's.
constexpr Bytes Footprint(Bytes bytes, Bytes alignment) {
  return alignment <= kUnit ? RoundUp(bytes, kUnit) : RoundUp(bytes, profiler::kDeviceAlignment);
}

// What the engine keeps with a live block.
struct BlockInfo {
  Bytes requested;  // as the job asked
  Tick token{-1};   // of its allocation in the device's sequence, -1 when it was too small to be one
  BlockId id{};     // its number in the recorded sequence
  Stream stream{};  // the stream of its allocation
  bool wanted_elsewhere = true;  // once it is free another stream may want its place: record an event
  Tick own_token{-1};            // of its allocation in its thread's sequence
  uint16_t thread = 0;           // the engine's number of that thread
  uint8_t owner = 0;             // whatever the engine's caller keeps with it
};

enum class Side : uint8_t { kBelow, kAbove };  // of the barrier

class Ranges {
 public:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index{0};

  // Two to a cache line: a search looks at several, and at nothing else of them.
  struct alignas(32) Range {
    uint32_t begin = 0;  // in units
    uint32_t units = 0;
    Index before = kNone;  // neighbours in address order, where free ranges are on record
    Index after = kNone;
    Index list_before = kNone;  // neighbours in the list of its size class, while free
    Index list_after = kNone;
    Index beside = kNone;  // on record, the next one that begins in the same cell
    bool live = false;

    uint32_t end() const { return begin + units; }
  };

  // One free range over [begin, end), in units; begin < end.
  Ranges(uint32_t begin, uint32_t end);
  bool ok() const { return heads_.ok() && starts_.ok(); }

  // Takes [begin, begin + units) if all of it is free and on one side of the barrier; kNone otherwise.
  Index TakeAt(uint32_t begin, uint32_t units) {
    if (begin >= barrier_ || tracked_) return TakeTracked(begin, units);
    if (begin < begin_ || begin + units > barrier_ || Occupied(begin, begin + units)) return kNone;
    const Index block = NewRecord();
    ranges_[block].begin = begin;
    ranges_[block].units = units;
    ranges_[block].live = true;
    PutOnRecord(block);
    return block;
  }

  // Takes `units` at a multiple of `align` units (a power of two) from a free range of one of the sides asked
  // for: of the smallest that fits (of those looked at), the lowest. kNone when none fits. `fit(range,
  // begin)` may refuse a range (kNone) or move the begin of the block up within it, to another multiple of
  // `align`.
  template <typename Fit>
  Index TakeBest(uint32_t units, uint32_t align, bool below, bool above, Fit fit) {
    if (below) Track();
    Candidate best = below ? Best(lists_[0], units, align, fit) : Candidate();
    if (above) {
      const Candidate other = Best(lists_[1], units, align, fit);
      if (best.range == kNone ||
          (other.range != kNone && ranges_[other.range].units < ranges_[best.range].units)) {
        best = other;
      }
    }
    return best.range == kNone ? kNone : Carve(best.range, best.begin, units);
  }

  Index TakeBest(uint32_t units, uint32_t align, bool below, bool above) {
    return TakeBest(units, align, below, above, [](const Range&, uint32_t begin) { return begin; });
  }

  // What lies right below `unit` (> begin): down to where, and whether it is free.
  struct Run {
    uint32_t begin = 0;
    bool free = true;
  };
  Run RunBelow(uint32_t unit) const {
    const Index i = AtOrBefore(unit - 1);
    if (i == kNone) return {begin_, true};
    const Range& range = ranges_[i];
    return range.end() < unit ? Run{range.end(), true} : Run{range.begin, !range.live};
  }

  // Makes a live block free again.
  void Release(Index block) {
    if (ranges_[block].begin >= barrier_ || tracked_) return ReleaseTracked(block);
    TakeOffRecord(block);
  }

  // The live block that begins at `begin`, or kNone.
  Index FindLive(uint32_t begin) const {
    Index i = HeadOf(begin);
    while (i != kNone && ranges_[i].begin != begin) i = ranges_[i].beside;
    return i != kNone && ranges_[i].live ? i : kNone;
  }

  // The live block that covers `unit`, or kNone.
  Index FindAround(uint32_t unit) const {
    const Index i = AtOrBefore(unit);
    return i != kNone && ranges_[i].live && unit < ranges_[i].end() ? i : kNone;
  }

  // Puts the barrier at `barrier`, or at the end of the live block that spans it. Linear in the number of
  // ranges.
  void SetBarrier(uint32_t barrier);
  uint32_t barrier() const { return barrier_; }

  const Range& operator[](Index i) const { return ranges_[i]; }
  BlockInfo& info(Index block) { return infos_[block]; }

  // Calls visit(range, info) for every live block in address order.
  template <typename Visit>
  void ForEachLive(Visit visit) const {
    ForEachOnRecord([&](Index i) {
      if (ranges_[i].live) visit(ranges_[i], infos_[i]);
    });
  }

  // Calls visit(range) for the free ranges of a side, larger size classes first, until it returns false.
  template <typename Visit>
  void ForEachFreeBySize(Side side, Visit visit) {
    if (side == Side::kBelow) Track();
    const Lists& lists = lists_[static_cast<size_t>(side)];
    for (int c = kClasses - 1; c >= 0; --c) {
      for (Index i = lists.head[c]; i != kNone; i = ranges_[i].list_after) {
        if (!visit(ranges_[i])) return;
      }
    }
  }

  // True when records, links, lists and bits agree; for tests, linear.
  bool Consistent() const;

 private:
  // Size classes: 32 linear steps within each power of two, exact below 32 units.
  static constexpr int kStepBits = 5;
  static constexpr int kSteps = 1 << kStepBits;
  static constexpr int kClasses = (32 - kStepBits + 1) * kSteps;
  // How many ranges of one class a search looks at: bounds the cost; classes are 3 % wide, so more brings
  // little.
  static constexpr int kLook = 8;

  struct Lists {
    std::array<Index, kClasses> head;
    std::array<uint64_t, kClasses / 64 + 1> any;  // which classes are not empty
    uint32_t any_word;                            // which words of `any`
  };
  static_assert(kClasses / 64 + 1 <= 32);

  static constexpr int kCellBits = 3;  // 8 units: 2 KiB

  static int ClassOf(uint32_t units) {
    if (units < kSteps) return static_cast<int>(units);
    const int shift = std::bit_width(units) - 1 - kStepBits;
    return (shift + 1) * kSteps + static_cast<int>(units >> shift) - kSteps;
  }
  Side SideOf(const Range& range) const { return range.begin < barrier_ ? Side::kBelow : Side::kAbove; }
  // The first class from `from` on that is not empty, or -1.
  static int NextClass(const Lists& lists, int from) {
    const auto word = static_cast<size_t>(from) / 64;
    const uint64_t here = lists.any[word] & (~uint64_t{0} << (from % 64));
    if (here != 0) return static_cast<int>(word * 64) + std::countr_zero(here);
    const uint32_t later = lists.any_word & (~uint32_t{1} << word);
    if (later == 0) return -1;
    const int next = std::countr_zero(later);
    return next * 64 + std::countr_zero(lists.any[static_cast<size_t>(next)]);
  }
  void Link(Index i);
  void Unlink(Index i);

  // Whether a live block reaches into [begin, end), where live blocks alone are on record: the last that
  // begins before `end` tells, because they do not overlap one another.
  bool Occupied(uint32_t begin, uint32_t end) const {
    const Index last = AtOrBefore(end - 1);
    return last != kNone && ranges_[last].end() > begin;
  }

  Index NewRecord() {
    if (unused_.empty()) GrowRecords();
    const Index i = unused_.back();
    unused_.pop_back();
    return i;
  }
  void GrowRecords();

  // The head of a cell's list is an index and one, so that zero, which the system gives, is none.
  Index& Head(uint32_t unit) { return heads_[(unit - begin_) >> kCellBits]; }
  Index HeadOf(uint32_t unit) const { return heads_[(unit - begin_) >> kCellBits] - 1; }
  // The range on record that begins at `unit`, where one does.
  Index At(uint32_t unit) const {
    Index i = HeadOf(unit);
    while (ranges_[i].begin != unit) i = ranges_[i].beside;
    return i;
  }
  // The last range on record that begins at `unit` or before, or kNone.
  Index AtOrBefore(uint32_t unit) const {
    const uint64_t at = starts_.AtOrBefore(unit - begin_);
    return at == BitTree::kNone ? kNone : At(begin_ + static_cast<uint32_t>(at));
  }

  void PutOnRecord(Index i) {
    Index& head = Head(ranges_[i].begin);
    ranges_[i].beside = head - 1;
    head = i + 1;
    starts_.Insert(ranges_[i].begin - begin_);
  }
  void TakeOffRecord(Index i) {
    starts_.Erase(ranges_[i].begin - begin_);
    Index& head = Head(ranges_[i].begin);
    if (head - 1 == i) {
      head = ranges_[i].beside + 1;
    } else {
      Index before = head - 1;
      while (ranges_[before].beside != i) before = ranges_[before].beside;
      ranges_[before].beside = ranges_[i].beside;
    }
    ranges_[i].live = false;
    unused_.push_back(i);
  }

  Index TakeTracked(uint32_t begin, uint32_t units);
  void ReleaseTracked(Index block);
  Index Carve(Index free, uint32_t begin, uint32_t units);
  Index AddFree(uint32_t begin, uint32_t end, Index before);
  struct Candidate {
    Index range = kNone;
    uint32_t begin = 0;
  };
  // The smallest range that fits among the first kLook of the first class that has one.
  template <typename Fit>
  Candidate Best(const Lists& lists, uint32_t units, uint32_t align, Fit& fit) const {
    for (int c = NextClass(lists, ClassOf(units)); c >= 0; c = NextClass(lists, c + 1)) {
      Candidate best;
      int looked = 0;
      for (Index i = lists.head[c]; i != kNone && looked < kLook; i = ranges_[i].list_after, ++looked) {
        const Range& range = ranges_[i];
        const uint64_t aligned = (uint64_t{range.begin} + align - 1) & ~uint64_t{align - 1};
        if (aligned + units > range.end()) continue;
        const bool better =
            best.range == kNone || range.units < ranges_[best.range].units ||
            (range.units == ranges_[best.range].units && range.begin < ranges_[best.range].begin);
        const uint32_t begin = better ? fit(range, static_cast<uint32_t>(aligned)) : kNone;
        if (begin != kNone) best = {i, begin};
      }
      if (best.range != kNone) return best;
    }
    return {};
  }
  void Track();
  void Untrack();
  void Rebuild();

  template <typename Visit>
  void ForEachOnRecord(Visit visit) const {
    for (uint64_t unit = starts_.AtOrAfter(0); unit != BitTree::kNone; unit = starts_.AtOrAfter(unit + 1)) {
      visit(At(begin_ + static_cast<uint32_t>(unit)));
    }
  }

  const uint32_t begin_;
  const uint32_t end_;
  uint32_t barrier_;
  bool tracked_ = false;         // free ranges below the barrier are on record
  int64_t until_untracked_ = 0;  // planned placements to go
  std::vector<Range> ranges_;
  std::vector<BlockInfo> infos_;  // of ranges_, while live
  std::vector<Index> unused_;     // records to use again
  SparseArray<Index> heads_;      // by cell: of the lists of ranges on record that begin there
  BitTree starts_;                // by unit - begin_: begins of the ranges on record
  std::array<Lists, 2> lists_;    // by Side
};

}  // namespace reprise::replay
