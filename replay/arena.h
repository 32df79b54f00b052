// One device's arena: a reserved address range whose physical memory is added and taken away in granules.
//
// Every block passes through it, so it knows what is live now and is itself the occupancy check (law 1). It
// places in two ways: PlaceAt, where a plan says, if that range is free now; and Place, best fit with
// coalescing. A plan is advice and can never cause an overlap.
//
// Memory: a granule is committed when a block first needs it. When more are needed, wholly free granules are
// moved (released where they are, committed where they are wanted) before the source is asked for new ones,
// so what is committed at once is the largest number of granules that were in use at once, not the largest
// address.
//
// On a device with streams (a StreamOrder is given) a range is handed out only where the order of its last
// frees allows it, and a granule is taken away only when nothing queued can still touch it.
//
// Two zones: blocks under kSmallBlock live in a zone of their own, so that a stray small block never
// displaces a planned one.
//
// Not thread-safe: the engine's lock is held around every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/units.h"
#include "replay/memory_source.h"
#include "replay/ranges.h"
#include "replay/stream_order.h"

namespace reprise::replay {

inline constexpr Bytes kSmallBlock{4096};
inline constexpr Bytes kAllOfIt{INT64_MAX};  // of GiveBack: however much it is

class Arena {
 public:
  // Where Place may put a block.
  enum class Where : uint8_t { kAnywhere, kOutsidePlan };

  struct Block {
    Ranges* zone = nullptr;  // null: no block
    Ranges::Index index = Ranges::kNone;
    explicit operator bool() const { return zone != nullptr; }
  };

  // May be taken away, to show what it is for; a job has no reason to.
  struct Rules {
    bool plan_lends = true;   // the plan's memory moves before much more is held than was ever live
    bool waits = true;        // the host waits for the device before more is held than was ever live
    bool plan_yields = true;  // see PlanYields
    bool for_streams = true;  // see HoldForStreams
  };

  // `capacity`: the most bytes of granules to hold committed, 0 for no limit but the source's.
  // `order` is null where there are no streams. Both outlive the arena.
  Arena(MemorySource* source, Bytes capacity, StreamOrder* order, Rules rules);
  Arena(MemorySource* source, Bytes capacity, StreamOrder* order = nullptr)
      : Arena(source, capacity, order, Rules()) {}
  bool ok() const { return main_.ok() && small_.ok() && committed_.ok() && missing_.ok(); }

  // A block of `bytes` (> 0) at `offset` (>= 0, a multiple of kUnit) for `stream` if that range is free and
  // memory for it can be had. The planned path: a look-up, a bit, and one question about granules.
  Block PlaceAt(Offset offset, Bytes bytes, Stream stream = {}) {
    if (bytes > main_end() - offset) return {};
    const auto first = static_cast<uint32_t>(offset.count() / kUnit.count());
    const uint32_t units = UnitsOf(bytes);
    if (order_ == nullptr) return Taken(&main_, main_.TakeAt(first, units), Need::kPlanned);
    StreamOrder::Reuse reuse = order_->Ask(first, first + units, stream).reuse;
    if (reuse == StreamOrder::Reuse::kNotYet) {
      order_->Refresh(StreamOrder::kSomeStreams);
      reuse = order_->Ask(first, first + units, stream).reuse;
      if (reuse == StreamOrder::Reuse::kNotYet) return {};
    }
    const Block block = Taken(&main_, main_.TakeAt(first, units), Need::kPlanned);
    planned_ += block ? 1 : 0;
    return reuse == StreamOrder::Reuse::kFree ? block : Waited(block, stream);
  }
  // A block of `bytes` (> 0) at a multiple of `alignment` (a power of two) for `stream` by best fit. None
  // when no memory can be had: the real allocator is next.
  Block Place(Bytes bytes, Bytes alignment, Where where, Stream stream = {});
  // The live block that begins at `offset`, which lies in the reserved range.
  Block Find(Offset offset) {
    if (offset.count() % kUnit.count() != 0) return {};
    const auto unit = static_cast<uint32_t>(offset.count() / kUnit.count());
    Ranges* zone = unit < small_begin_ ? &main_ : &small_;
    const Ranges::Index index = zone->FindLive(unit);
    if (index == Ranges::kNone) return {};
    return {zone, index};
  }
  // The live block that `inside`, which lies in the reserved range, is a part of.
  Block FindAround(Offset inside) {
    const auto unit = static_cast<uint32_t>(inside.count() / kUnit.count());
    Ranges* zone = unit < small_begin_ ? &main_ : &small_;
    const Ranges::Index index = zone->FindAround(unit);
    if (index == Ranges::kNone) return {};
    return {zone, index};
  }
  // Frees a block in the order of `stream`; kEveryStream: the device has finished with it.
  void Remove(Block block, Stream stream = {}) {
    const Ranges::Range& range = (*block.zone)[block.index];
    // It may throw: the block is live then as before.
    if (order_ != nullptr && !IsEveryStream(stream)) {
      order_->Freed(range.begin, range.end(), stream, Info(block).wanted_elsewhere);
    }
    placed_units_ -= range.units;
    block.zone->Release(block.index);
  }

  Offset OffsetOf(Block block) const { return Offset((*block.zone)[block.index].begin * kUnit.count()); }
  Bytes SizeOf(Block block) const { return kUnit * (*block.zone)[block.index].units; }
  static BlockInfo& Info(Block block) { return block.zone->info(block.index); }

  // The plan covers [0, end) from now on, or a part of it; 0: no plan. While it is followed, memory inside is not moved away
  // for others, because the plan will want it at the next iteration, unless more would be held than was ever
  // live at once and a little (kSlackForPlanned, kSlackForStrays). Place(kAnywhere), which is for when it is
  // not followed, may always.
  void SetPlanEnd(Offset end);
  // So much of it is kept free so that several streams run at once (stream_lag.h): no reason to move anything.
  void SetForLag(Bytes bytes) {
    for_lag_ = RoundUp(bytes, source_->granule()) / source_->granule();
    for_streams_ = 0;
  }
  // Held so that several streams run at once, at most, by plan or without one.
  Bytes for_streams() const { return source_->granule() * GranulesForStreams(); }
  // It has been followed for a whole cycle. Before, what lies in its way is there for the last time, and so
  // is what moves because of it: nothing more is held for it than was ever live at once.
  void PlanHasSettled() { plan_settled_ = true; }
  // Whether what is kept for plans would have made the arena hold more than ever, and than was ever live at once and a
  // twentieth. PlaceAt and Place(kOutsidePlan) have found no memory then, if the plan had been followed for a whole cycle. From
  // then on, until twice as much has been live, its free memory is anybody's.
  bool PlanYields() const { return GranulesOfPeak() < yields_below_; }
  Offset plan_end() const { return Offset(main_.barrier() * kUnit.count()); }
  // Where the zone of small blocks begins.
  Offset main_end() const { return Offset(small_begin_ * kUnit.count()); }

  // Releases wholly free granules outside the plan, which covers nothing below `plan_begin`, or all of them, but no more than
  // `most`. Returns the bytes released.
  Bytes GiveBack(bool plan_too, Bytes most = kAllOfIt, Offset plan_begin = Offset(0));
  // Whether the last time some was kept because the device had not finished with it.
  bool kept_busy() const { return kept_busy_; }

  Bytes placed() const { return kUnit * placed_units_; }  // live blocks as they lie
  Bytes committed() const { return source_->granule() * committed_count_; }
  // What the job has got elsewhere is held for it as well.
  void CountOutside(Bytes change) {
    outside_ += change;
    held_peak_ = std::max(held_peak_, held());
  }
  Bytes held() const { return committed() + outside_; }
  Bytes held_peak() const { return held_peak_; }
  // The most that can be committed, as far as is known; kAllOfIt where that is not.
  Bytes most_to_be_had() const {
    const int64_t most = GranulesToBeHad();
    return most > kAllOfIt / source_->granule() ? kAllOfIt : source_->granule() * most;
  }
  // Of what is committed, the granules in which nothing is live: what GiveBack can release once the device has
  // finished with them. O(live blocks).
  Bytes idle() const;
  int64_t granules_moved() const { return granules_moved_; }

  // Calls visit(offset, bytes, info) for every live block outside the zone of small ones, in address order.
  template <typename Visit>
  void ForEachLive(Visit visit) const {
    main_.ForEachLive([&](const Ranges::Range& range, const BlockInfo& info) {
      visit(Offset(range.begin * kUnit.count()), kUnit * range.units, info);
    });
  }

  // The units of the whole range that a source has reserved.
  static uint32_t UnitsOf(const MemorySource& source) {
    return static_cast<uint32_t>(source.granule_count() * (source.granule() / kUnit));
  }

  // Calls visit(offset, bytes, info) for every live block in the zone of small ones, in address order.
  template <typename Visit>
  void ForEachSmallLive(Visit visit) const {
    small_.ForEachLive([&](const Ranges::Range& range, const BlockInfo& info) {
      visit(Offset(range.begin * kUnit.count()), kUnit * range.units, info);
    });
  }

  bool Consistent() const { return main_.Consistent() && small_.Consistent(); }

 private:
  static uint32_t UnitsOf(Bytes bytes) {
    return static_cast<uint32_t>((bytes.count() + kUnit.count() - 1) / kUnit.count());
  }

  // For what memory is wanted, which decides what may be moved for it out of the plan.
  enum class Need : uint8_t { kPlanned, kStray, kWherever };

  // A range taken becomes a block once there is memory under all of it.
  Block Taken(Ranges* zone, Ranges::Index index, Need need) {
    if (index == Ranges::kNone) return {};
    // Copied: to make room, records may be added, and then they move.
    const uint32_t units = (*zone)[index].units;
    const uint32_t begin = (*zone)[index].begin;
    const auto first = static_cast<uint64_t>(begin >> granule_shift_);
    const uint64_t last = (uint64_t{begin} + units - 1) >> granule_shift_;
    if (!missing_.AnyIn(first, last + 1) ||
        CommitFor(static_cast<int64_t>(first), static_cast<int64_t>(last + 1), units, need)) {
      ++placements_;
      placed_units_ += units;
      if (placed_units_ > placed_peak_) RaisePeak();
      return {zone, index};
    }
    zone->Release(index);
    return {};
  }
  template <typename Fit>
  Block TakeBest(Bytes bytes, Bytes alignment, Where where, Fit fit);
  // A free range, and whether more is about to be held for streams there than was ever live.
  struct Best {
    Block block;
    bool holds = false;
  };
  Best PlaceBest(Bytes bytes, Bytes alignment, Where where, Stream stream, bool may_hold);
  uint32_t FirstInOrder(const Ranges::Range& range, uint32_t begin, uint32_t units, uint32_t align,
                        Stream stream, bool waits) const;
  bool Present(uint32_t begin, uint32_t units) const;
  bool Present(Block block) const {
    return Present((*block.zone)[block.index].begin, (*block.zone)[block.index].units);
  }
  Block Waited(Block block, Stream stream);
  bool CommitFor(int64_t first, int64_t last, uint32_t units, Need need);
  bool ShouldWait(int64_t wanted, Need need) const;
  StreamOrder::Spares WaitSpares(int64_t wanted, Need need) const;
  int64_t MoveFree(int64_t most, int64_t wanted, Need need);
  int64_t Excess(int64_t wanted, Need need) const;
  // Of what was ever live at once; placed_peak_ is in units, and one may lie across two.
  int64_t GranulesOfPeak() const { return (placed_peak_ >> granule_shift_) + 1; }
  int64_t GranulesForStreams() const { return std::max(for_lag_, for_streams_); }
  void RaisePeak();
  bool HoldForStreams(int64_t missing);
  int64_t GranulesToBeHad() const;
  bool Yields(int64_t missing, uint32_t units);
  int64_t CountMissing(Block block) const;
  int64_t CountMissing(int64_t first, int64_t last) const;
  bool CommitMissing(int64_t first, int64_t last);
  void NoteRefused(int64_t granules);
  bool CommitAgain(int64_t first, int64_t last);
  int64_t ReleaseFree(int64_t wanted, bool plan_too);
  int64_t ReleaseFreeIn(Ranges& zone, Side side, int64_t wanted, int looks);
  int64_t ReleaseFreeInPlan(int64_t wanted);
  int64_t ReleaseBelow(Offset end, int64_t wanted);
  int64_t ReleaseAtBarrier();
  bool IsIdle(int64_t granule) const;
  int64_t ReleaseIn(uint32_t begin, uint32_t end, int64_t wanted, int& looks);
  void Release(int64_t first, int64_t count);

  MemorySource* source_;
  StreamOrder* order_;  // null: no streams
  const Rules rules_;
  const int64_t units_per_granule_;  // a power of two
  const int granule_shift_;
  const int64_t limit_;         // granules
  const Bytes reserved_;        // of address space
  const uint32_t small_begin_;  // in units: main_ below, small_ from here
  Ranges main_;
  Ranges small_;
  BitTree committed_;  // by granule
  BitTree missing_;    // its complement, so that the hot path asks one question
  int64_t committed_count_ = 0;
  int64_t refused_from_ = std::numeric_limits<int64_t>::max();  // granules on
  int64_t refused_at_ = 0;                                      // placements
  Bytes outside_;                                               // of the arena
  Bytes held_peak_;
  int64_t placed_units_ = 0;  // of live blocks
  int64_t placed_peak_ = 0;
  int64_t placements_ = 0;  // that there were
  int64_t planned_ = 0;     // of these, where there are streams, by plan
  int64_t noted_peak_ = 0;  // of placed_peak_, within a little
  int64_t noted_at_ = 0;    // placements
  bool plan_settled_ = false;
  int64_t yields_below_ = 0;  // granules of the peak
  int64_t for_lag_ = 0;       // granules
  int64_t for_streams_ = 0;   // the same, where no plan did it
  int64_t lent_ = 0;          // granules that settled plans have given for blocks they did not expect
  bool kept_busy_ = false;
  uint32_t plan_scan_ = 0;  // below this unit the plan's free memory is looked for next
  int64_t granules_moved_ = 0;
};

}  // namespace reprise::replay
