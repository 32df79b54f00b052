// First-fit without conflict pairs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "planner/interval_lists.h"
#include "planner/search.h"
#include "planner/slot_words.h"

namespace reprise::planner {

// Places buffers one by one, each at the lowest offset that is free during its whole lifetime.
//
// A segment tree over words of slots, of eight branches a node (half the sets to insert into that a binary
// one has). The lifetime of a buffer is cut into O(log slots) nodes, its canonical ones, and into parts of
// words, two a range at most. Each node keeps two sets of addresses: `cover`, taken by the buffers that have
// the node as a canonical one, and `any`, taken at some slot below the node; words know of each slot who has
// it. What blocks a lifetime is then the `any` of its canonical nodes, the `cover` of the nodes above them
// and above its parts, and in the words of these who shares a slot with them; an address leaps past all that,
// in turn, until it needs no more leaps. Pinned buffers are in the tree from the beginning, and a lifetime
// that wraps is simply two ranges of slots. The construction is built once and serves many orders.
//
// Where a great many intervals are in the way and no hole between them is large enough, who has looked at too
// many goes on above the pinned buffers; and if that takes too long as well, above all that is in its way.
// So it stays near-linear, and the offset is then free but need not be the lowest.
class FirstFit {
 public:
  explicit FirstFit(const Instance& instance) : FirstFit(instance, own_) {}
  // Keeps its sets in `memory`, which outlives it and which nobody else uses meanwhile.
  FirstFit(const Instance& instance, IntervalLists& memory);
  FirstFit(const FirstFit&) = delete;

  enum class Outcome { kComplete, kTooHigh, kStopped };

  // Places the free buffers in the given order and fills `offsets` (those of pinned buffers too). Gives up,
  // with part of the offsets filled, once a buffer would end above `limit` (kTooHigh; too_high() says which)
  // or when search.Stop().
  Outcome Place(std::span<const int32_t> order, int64_t limit, Search& search, std::vector<int64_t>& offsets);
  int32_t too_high() const { return too_high_; }

  // The same one buffer at a time: takes all free buffers out; the lowest offset from `from` on that is free
  // for `buffer`; puts `buffer`, of which it is the last that LowestFree was asked about, at `offset`, which
  // is free. None is put twice. Clear() returns the steps that it took, as many as there are pinned buffers or more.
  int64_t Clear();
  int64_t LowestFree(int32_t buffer, int64_t from = 0);
  void Insert(int32_t buffer, int64_t offset);

  // Of the buffer that LowestFree was last asked about: to look at or to insert into, a step each.
  int64_t Nodes() const { return static_cast<int64_t>(canonical_.size() + above_.size() + parts_.size()); }

  // How often, since Clear(), a buffer had looked at too many intervals.
  int64_t resorts() const { return resorts_; }

 private:
  void FindNodes(int32_t buffer);
  void AddWords(Range words);
  void AddPath(int32_t level, int32_t index);
  int64_t LeapSets(int64_t address, int64_t size, int64_t alignment);
  int64_t TopOfBlockers() const;

  static int32_t Cover(int32_t node) { return 2 * node; }
  static int32_t Any(int32_t node) { return 2 * node + 1; }

  const Instance& instance_;
  SlotWords words_;
  // The first node of each level, from the words up to the root, and one more.
  std::vector<int32_t> level_begin_;
  IntervalLists own_;
  IntervalLists& sets_;
  std::vector<int32_t> pinned_;  // from the bottom up
  int64_t top_of_pinned_ = 0;
  int64_t spare_looks_ = 0;  // that all buffers to come may have beside those each one has
  // Of the buffer at hand: its canonical nodes, its parts of words, and all nodes above these, each once.
  std::vector<int32_t> canonical_;
  std::vector<SlotWords::Part> parts_;
  std::vector<int32_t> above_;
  std::vector<IntervalLists::Cursor> blockers_;
  std::vector<SlotWords::Cursor> word_blockers_;
  int64_t resorts_ = 0;
  int64_t looks_ = 0;           // at intervals, that are left to it
  std::vector<uint32_t> seen_;  // per node: the last round in which it was put into above_
  uint32_t round_ = 0;
  int32_t too_high_ = -1;
};

// Places in `order`, gives up once that cannot beat the best placement so far, and offers what comes of it as `solver`'s.
void PlaceBelowBest(FirstFit& first_fit, const std::vector<int32_t>& order, Search& search,
                    std::string_view solver);

}  // namespace reprise::planner
