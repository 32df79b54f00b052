// An interval of addresses tiled by live blocks and free ranges.
//
// This is the occupancy check of the arena (law 1): a block is handed out only by taking it out of a free
// range, so two live blocks cannot overlap whatever a plan says. Every range, live or free, is one record,
// linked to its neighbours in address order; free ranges also hang in segregated lists by size (two-level
// segregated fit: Masmano et al. 2004), and the begin of every range is a bit in a BitTree, which finds the
// range around an arbitrary address.
//
// Glossary
//   unit      512 bytes, the smallest block and the alignment of every one
//   range     a maximal run of free units, or one live block
//   barrier   an address that no free range spans, so that the free ranges below and above it are two groups
//   that
//             can be searched apart: below lies the plan
//
// Costs, hot: take or release 15 to 30 ns each; no heap allocation unless more ranges exist than ever before.
// Not thread-safe: the engine's lock is held around every call.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "replay/bit_tree.h"
#include "replay/sparse_array.h"

namespace reprise::replay {

inline constexpr Bytes kUnit{512};

// What the engine keeps with a live block.
struct BlockInfo {
  Bytes requested;  // as the job asked
  Tick token{-1};   // the token of its allocation in the history, -1 when it was too small to be one
  BlockId id{};     // its number in the recorded sequence
  Stream stream{};  // the stream of its allocation
};

enum class Group : uint8_t { kBelow, kAbove };  // of the barrier

class Ranges {
 public:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index{0};

  struct Range {
    uint32_t begin = 0;  // in units
    uint32_t units = 0;
    Index before = kNone;  // neighbours in address order
    Index after = kNone;
    Index list_before = kNone;  // neighbours in the list of its size class, while free
    Index list_after = kNone;
    bool live = false;
    BlockInfo info;  // while live

    uint32_t end() const { return begin + units; }
  };

  // One free range over [begin, end), in units; begin < end.
  Ranges(uint32_t begin, uint32_t end);
  bool ok() const { return at_.ok() && starts_.ok(); }

  // Takes [begin, begin + units) out of the free range that holds it whole; kNone when there is none.
  Index TakeAt(uint32_t begin, uint32_t units);

  // Takes `units` at a multiple of `align` units from a free range of one of the groups asked for: of the
  // smallest that fits (of those looked at), the lowest. kNone when none fits.
  Index TakeBest(uint32_t units, uint32_t align, bool below, bool above);

  // Makes a live block free again and merges it with its free neighbours. Returns the free range it is now
  // part of.
  Index Release(Index block);

  // The live block that begins at `begin`, or kNone.
  Index FindLive(uint32_t begin) const;

  // The range that holds `unit`, which must lie in the interval.
  Index Around(uint32_t unit) const;

  void SetBarrier(uint32_t barrier);
  uint32_t barrier() const { return barrier_; }

  const Range& operator[](Index i) const { return ranges_[i]; }
  BlockInfo& info(Index block) { return ranges_[block].info; }

  // Calls visit(range) for every range in address order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (Index i = first_; i != kNone; i = ranges_[i].after) visit(ranges_[i]);
  }

  // Calls visit(range) for the free ranges of a group, larger size classes first, until it returns false.
  template <typename Visit>
  void ForEachFreeBySize(Group group, Visit visit) const {
    const Lists& lists = lists_[static_cast<size_t>(group)];
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
  static constexpr int kLook = 24;

  struct Lists {
    std::array<Index, kClasses> head;
    std::array<uint64_t, (kClasses + 63) / 64> any;  // which classes are not empty
  };

  static int ClassOf(uint32_t units);
  Group GroupOf(const Range& range) const { return range.begin < barrier_ ? Group::kBelow : Group::kAbove; }
  int NextClass(const Lists& lists, int from) const;
  void Link(Index i);
  void Unlink(Index i);
  Index NewRecord();
  void Insert(Index i, Index before, Index after);
  void Remove(Index i);
  Index Carve(Index free, uint32_t begin, uint32_t units);
  Index Best(const Lists& lists, uint32_t units, uint32_t align) const;
  void SplitFree(Index i, uint32_t at);

  uint32_t begin_;
  uint32_t barrier_;
  Index first_ = kNone;
  std::vector<Range> ranges_;
  std::vector<Index> unused_;   // records to use again
  SparseArray<Index> at_;       // by unit - begin_: the range that begins there, if starts_ has it
  BitTree starts_;              // by unit - begin_: begins of ranges, live and free
  std::array<Lists, 2> lists_;  // by Group
};

}  // namespace reprise::replay
