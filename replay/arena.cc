#include "replay/arena.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace reprise::replay {
namespace {

// The small zone: the last eighth of the reserved range. Addresses are free, so its size only has to be
// ample.
int64_t SmallZoneBegin(const MemorySource& source) {
  const int64_t granules = source.granule_count();
  const int64_t first = granules - std::max<int64_t>(1, granules / 8);
  return first * (source.granule() / kUnit);
}

// Memory of the plan that is free at the moment is left to it until more would be held than was ever live at
// once and one part in so many. More for what the plan itself asks for, so that a plan which is a little
// higher than the live peak does not move its own memory about in every round. For what it does not expect, no
// more than it has had to lend before: what comes once, at a job's end say, is not worth memory for good.
constexpr int64_t kSlackForPlanned = 50;
constexpr int64_t kSlackForStrays = 64;
// More held than was ever live at once by this part of it, and what is kept for plans costs more than they bring; what was
// so in a job's start says nothing of when it is so many times as large.
constexpr int64_t kPartsForPlan = 20;
constexpr int64_t kTimesLarger = 2;
// What would be held besides is much from this part of what was ever live at once on.
constexpr int64_t kPartsThatAreMuch = 16;
// So large a part of what was ever live is held besides, at most, sooner than that streams wait for one another. A plan takes more
// where it has to (stream_lag.h), but what it does not need it does not take.
constexpr int64_t kPartsForStreams = 8;
// A job that has gone on for so many times as long as it took to be as large as it is, give or take this part, has shown what
// it does: a plan would have come by now.
constexpr int64_t kTimesToShow = 8;
constexpr int64_t kPartsToNote = 64;
// After so many placements it is tried again whether there is more memory: somebody else may have had it.
constexpr int64_t kPlacementsToForget = 1 << 16;
// Blocks, gaps and free ranges looked at for one request, and granules that are not idle.
constexpr int kMostLooks = 4096;
// Of ReleaseFree: whatever there is, however long the search.
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

Arena::Arena(MemorySource* source, Bytes capacity, StreamOrder* order, Rules rules)
    : source_(source),
      order_(order),
      rules_(rules),
      units_per_granule_(source->granule() / kUnit),
      granule_shift_(std::countr_zero(static_cast<uint64_t>(units_per_granule_))),
      limit_(capacity.count() > 0 ? capacity / source->granule() : std::numeric_limits<int64_t>::max()),
      reserved_(source->granule() * source->granule_count()),
      small_begin_(static_cast<uint32_t>(SmallZoneBegin(*source))),
      main_(0, small_begin_),
      small_(small_begin_, static_cast<uint32_t>(source->granule_count() * units_per_granule_)),
      committed_(static_cast<uint64_t>(source->granule_count())),
      missing_(static_cast<uint64_t>(source->granule_count())) {
  if (missing_.ok()) missing_.InsertAll();
}

// A free range without memory under it yet; `fit` as in Ranges::TakeBest.
template <typename Fit>
Arena::Block Arena::TakeBest(Bytes bytes, Bytes alignment, Where where, Fit fit) {
  const uint32_t units = UnitsOf(Footprint(bytes, alignment));
  const uint32_t align = std::max<uint32_t>(1, UnitsOf(alignment));
  const bool small = bytes < kSmallBlock;
  Ranges* const zone = small ? &small_ : &main_;
  const Ranges::Index index = zone->TakeBest(
      units, align, small || where == Where::kAnywhere, true,
      [&](const Ranges::Range& range, uint32_t begin) { return fit(range, begin, units, align); });
  return index == Ranges::kNone ? Block() : Block{zone, index};
}

Arena::Block Arena::Place(Bytes bytes, Bytes alignment, Where where, Stream stream) {
  if (bytes > reserved_ || alignment > reserved_) return {};  // in units they might not even be numbers
  const Need need = where == Where::kAnywhere && bytes >= kSmallBlock ? Need::kWherever : Need::kStray;
  if (order_ == nullptr) {
    const Block block =
        TakeBest(bytes, alignment, where,
                 [](const Ranges::Range&, uint32_t begin, uint32_t, uint32_t) { return begin; });
    return Taken(block.zone, block.index, need);
  }
  const int64_t held = for_streams_;
  const Best best = PlaceBest(bytes, alignment, where, stream, rules_.for_streams);
  Block block = Taken(best.block.zone, best.block.index, need);
  if (best.holds) {
    for_streams_ = std::clamp(committed_count_ - GranulesOfPeak(), held, for_streams_);
    if (!block) {  // it was not to be had, and what is behind a wait is
      const Best waits = PlaceBest(bytes, alignment, where, stream, /*may_hold=*/false);
      block = Taken(waits.block.zone, waits.block.index, need);
    }
  }
  return Waited(block, stream);
}

// With streams: where nothing has to be waited for; but sooner than asking for new memory, behind a wait, unless more may be held
// for streams.
Arena::Best Arena::PlaceBest(Bytes bytes, Bytes alignment, Where where, Stream stream, bool may_hold) {
  const auto take = [&](bool waits, bool present) {
    return TakeBest(bytes, alignment, where,
                    [&](const Ranges::Range& range, uint32_t begin, uint32_t units, uint32_t align) {
                      const uint32_t at = FirstInOrder(range, begin, units, align, stream, waits);
                      return at == Ranges::kNone || !present || Present(at, units) ? at : Ranges::kNone;
                    });
  };
  Block at_once = take(/*waits=*/false, /*present=*/false);
  if (at_once && Present(at_once)) return {at_once};
  if (at_once) at_once.zone->Release(at_once.index);
  order_->Refresh(StreamOrder::kSomeStreams);
  at_once = take(/*waits=*/false, /*present=*/false);
  if (at_once && Present(at_once)) return {at_once};
  // Not held meanwhile: it may lie in the very range that could be waited for.
  const int64_t missing = at_once ? CountMissing(at_once) : 0;
  if (at_once) at_once.zone->Release(at_once.index);
  const Block behind_wait = take(/*waits=*/true, /*present=*/true);
  if (!behind_wait) return {take(/*waits=*/!at_once, /*present=*/false)};
  const Ranges::Range& range = (*behind_wait.zone)[behind_wait.index];
  // What is free at once and was not the best fit is no better for being there.
  const bool same = order_->Ask(range.begin, range.end(), stream).reuse == StreamOrder::Reuse::kFree;
  const bool holds = at_once && !same && may_hold && HoldForStreams(missing);
  if (!at_once || (!same && !holds)) return {behind_wait};
  behind_wait.zone->Release(behind_wait.index);
  return {take(/*waits=*/false, /*present=*/false), holds};
}

// A place in a free range, from `begin` up, that the order allows: the first, or after some tries the one
// behind all that it does not.
uint32_t Arena::FirstInOrder(const Ranges::Range& range, uint32_t begin, uint32_t units, uint32_t align,
                             Stream stream, bool waits) const {
  constexpr int kTries = 8;
  uint64_t at = begin;
  for (int i = 0; i < kTries && at + units <= range.end(); ++i) {
    const auto from = static_cast<uint32_t>(at);
    const StreamOrder::Answer answer = order_->Ask(from, from + units, stream);
    const bool fits =
        answer.reuse == StreamOrder::Reuse::kFree || (waits && answer.reuse == StreamOrder::Reuse::kWait);
    if (fits) return from;
    const uint32_t next = waits ? answer.wait_from : answer.free_from;
    at = (uint64_t{next} + align - 1) / align * align;
  }
  if (at + units > range.end()) return Ranges::kNone;
  // Many have used it: behind them all there may be room that nobody has.
  const StreamOrder::Answer rest = order_->Ask(static_cast<uint32_t>(at), range.end(), stream);
  const uint32_t behind = waits ? rest.wait_from : rest.free_from;
  at = std::max(at, (uint64_t{behind} + align - 1) / align * align);
  return at + units <= range.end() ? static_cast<uint32_t>(at) : Ranges::kNone;
}

bool Arena::Present(uint32_t begin, uint32_t units) const {
  const auto first = static_cast<uint64_t>(begin >> granule_shift_);
  return !missing_.AnyIn(first, ((uint64_t{begin} + units - 1) >> granule_shift_) + 1);
}

// A block is its stream's to use once the stream waits for whoever used the place before.
Arena::Block Arena::Waited(Block block, Stream stream) {
  if (!block) return {};
  const Ranges::Range& range = (*block.zone)[block.index];
  if (order_->Ask(range.begin, range.end(), stream).reuse == StreamOrder::Reuse::kFree ||
      order_->Wait(range.begin, range.end(), stream)) {
    return block;
  }
  placed_units_ -= range.units;
  block.zone->Release(block.index);
  return {};
}

void Arena::RaisePeak() {
  placed_peak_ = placed_units_;
  if (placed_peak_ - noted_peak_ <= noted_peak_ / kPartsToNote) return;
  noted_peak_ = placed_peak_;
  noted_at_ = placements_;
}

// Whether so many granules more may be held sooner than that a stream waits for what another one has left; then they are
// no reason to move or to wait for anything. Not while a plan may still come, which keeps streams from waiting by itself; nor
// where memory does not move, for then there is none but the plan's.
bool Arena::HoldForStreams(int64_t missing) {
  const bool has_no_plan = placements_ > kTimesToShow * noted_at_ && planned_ * 2 < placements_;
  const int64_t besides = committed_count_ + missing - GranulesOfPeak();
  if (!source_->moves() || !has_no_plan || committed_count_ + missing > GranulesToBeHad() ||
      besides * kPartsForStreams > GranulesOfPeak()) {
    return false;
  }
  for_streams_ = std::max(for_streams_, besides);
  return true;
}

int64_t Arena::GranulesToBeHad() const {
  const bool is_known = placements_ < refused_at_ + kPlacementsToForget;
  return is_known ? std::min(limit_, refused_from_ - 1) : limit_;
}

void Arena::SetPlanEnd(Offset end) {
  end = std::min(end, main_end());
  source_->Plan(end - Offset(0));
  main_.SetBarrier(UnitsOf(end - Offset(0)));
  plan_settled_ = false;
}

// Commits what is missing of granules [first, last) for a block of `units`, moving free ones first. False: it cannot be had, or the
// plan yields.
bool Arena::CommitFor(int64_t first, int64_t last, uint32_t units, Need need) {
  const int64_t wanted = CountMissing(first, last);
  // Nothing that could be given back would be enough. What is live lies in granules other than the missing.
  if ((placed_units_ >> granule_shift_) + wanted > limit_) return false;
  const int64_t moved = MoveFree(wanted, wanted, need);
  if (moved < wanted && ShouldWait(wanted, need) && order_->WaitForFreed(WaitSpares(wanted, need)))
    MoveFree(std::min(wanted - moved, Excess(wanted, need)), wanted, need);
  if (need != Need::kWherever && Yields(CountMissing(first, last), units)) {
    const bool small = first * units_per_granule_ >= small_begin_;  // and has no other place
    if (plan_settled_ && !small) return false;
  }
  const bool done = CommitMissing(first, last) || CommitAgain(first, last);
  source_->Trim();
  return done;
}

// That so many granules were not to be had. Of fewer it says nothing; nor where memory does not move: that is taken in one
// piece, and whatever lies beside it is refused.
void Arena::NoteRefused(int64_t granules) {
  if (!source_->moves() || GranulesToBeHad() < granules) return;
  refused_from_ = granules;
  refused_at_ = placements_;
}

// Out of memory is first met by giving back what we hold, then by asking again (law 3): as much as is wanted, the same once the
// device has finished with more, and at last all there is.
bool Arena::CommitAgain(int64_t first, int64_t last) {
  NoteRefused(committed_count_ + CountMissing(first, last));
  for (const bool waits : {false, true}) {
    if (!source_->moves() || (waits && !(kept_busy_ && order_->WaitForFreed(StreamOrder::Spares::kFailure))))
      break;
    kept_busy_ = false;
    const int64_t wanted = CountMissing(first, last);
    const int64_t released = ReleaseFree(wanted, /*plan_too=*/false);
    granules_moved_ += released + ReleaseFreeInPlan(wanted - released);
    if (CommitMissing(first, last)) return true;
  }
  ReleaseFree(kAll, /*plan_too=*/true);
  source_->Trim();
  return CommitMissing(first, last);
}

// Whether nothing is kept for plans from now on, as `missing` granules more for a block of `units` would be too much. It may lie
// anywhere then. Where memory cannot move, that of a plan comes on top of what was held before.
bool Arena::Yields(int64_t missing, uint32_t units) {
  if (!rules_.plan_yields || main_.barrier() == 0 || PlanYields() || !source_->moves()) return false;
  if (held() + source_->granule() * missing <= held_peak_) return false;
  const int64_t live = (std::max(placed_peak_, placed_units_ + units) >> granule_shift_) + 1;
  if (committed_count_ + missing <= live + live / kPartsForPlan + GranulesForStreams()) return false;
  yields_below_ = kTimesLarger * live;
  return true;
}

// Where the device is behind the host, it has not finished with what could be moved. Before more is held than was ever
// live, the host lets it catch up.
bool Arena::ShouldWait(int64_t wanted, Need need) const {
  return rules_.waits && kept_busy_ && source_->moves() && Excess(wanted, need) > 0;
}

StreamOrder::Spares Arena::WaitSpares(int64_t wanted, Need need) const {
  return Excess(wanted, need) * kPartsThatAreMuch >= GranulesOfPeak() ? StreamOrder::Spares::kMuch
                                                                      : StreamOrder::Spares::kLittle;
}

// Releases free granules, `most` outside of the plan, where `wanted` are about to be committed elsewhere, and inside of
// it no more than would be too many then. Returns how many.
int64_t Arena::MoveFree(int64_t most, int64_t wanted, Need need) {
  kept_busy_ = false;
  int64_t moved = ReleaseFree(most, need == Need::kWherever);
  if (need != Need::kWherever && rules_.plan_lends) {
    const int64_t lent = ReleaseFreeInPlan(std::min(most, Excess(wanted, need)));
    moved += lent;
    if (need == Need::kStray && plan_settled_) lent_ += lent;
  }
  granules_moved_ += moved;
  return moved;
}

int64_t Arena::CountMissing(Block block) const {
  const Ranges::Range& range = (*block.zone)[block.index];
  return CountMissing(range.begin >> granule_shift_, (int64_t{range.end() - 1} >> granule_shift_) + 1);
}

int64_t Arena::CountMissing(int64_t first, int64_t last) const {
  int64_t count = 0;
  for (uint64_t g = missing_.AtOrAfter(first); g < static_cast<uint64_t>(last); g = missing_.AtOrAfter(g + 1))
    ++count;
  return count;
}

// Commits what is missing of granules [first, last). On refusal what was committed stays: it is wholly free,
// and the next call that needs memory moves it.
bool Arena::CommitMissing(int64_t first, int64_t last) {
  if (committed_count_ + CountMissing(first, last) > limit_) return false;
  for (;;) {
    const uint64_t from = missing_.AtOrAfter(static_cast<uint64_t>(first));
    if (from >= static_cast<uint64_t>(last)) return true;
    const uint64_t to = std::min<uint64_t>(committed_.AtOrAfter(from), static_cast<uint64_t>(last));
    if (!source_->Commit(static_cast<int64_t>(from), static_cast<int64_t>(to - from))) return false;
    for (uint64_t g = from; g < to; ++g) {
      missing_.Erase(g);
      committed_.Insert(g);
    }
    committed_count_ += static_cast<int64_t>(to - from);
    held_peak_ = std::max(held_peak_, held());
    if (committed_count_ >= refused_from_) refused_from_ = std::numeric_limits<int64_t>::max();
  }
}

int64_t Arena::ReleaseFree(int64_t wanted, bool plan_too) {
  if (wanted == 0) return 0;
  if (order_ != nullptr) {
    const size_t streams = wanted == kAll ? StreamOrder::kAllStreams : StreamOrder::kSomeStreams;
    // What the host has waited for is idle, though no event has been recorded since.
    order_->LearnFinished(streams);
    order_->Refresh(streams);
  }
  const int looks = wanted == kAll ? std::numeric_limits<int>::max() : kMostLooks;  // of each group
  int64_t released = ReleaseFreeIn(main_, Side::kAbove, wanted, looks);
  if (released < wanted) released += ReleaseFreeIn(small_, Side::kAbove, wanted - released, looks);
  if (released < wanted && plan_too) released += ReleaseFreeIn(main_, Side::kBelow, wanted - released, looks);
  if (released < wanted && plan_too) released += ReleaseAtBarrier();
  return released;
}

// The granule that the barrier cuts lies whole in no free range, even where nothing in it is live.
int64_t Arena::ReleaseAtBarrier() {
  const uint32_t begin = main_.barrier() >> granule_shift_ << granule_shift_;
  const uint32_t end = begin + static_cast<uint32_t>(units_per_granule_);
  if (begin == main_.barrier()) return 0;
  for (uint32_t unit = end; unit > begin;) {
    const Ranges::Run run = main_.RunBelow(unit);
    if (!run.free) return 0;
    unit = run.begin;
  }
  int looks = 1;
  return ReleaseIn(begin, end, /*wanted=*/1, looks);
}

// Releases up to `wanted` committed granules that lie whole in free ranges of a group, largest ranges first:
// those are the last that best fit would use. Ranges that have long given theirs may be many: each is a look.
int64_t Arena::ReleaseFreeIn(Ranges& zone, Side side, int64_t wanted, int looks) {
  int64_t released = 0;
  zone.ForEachFreeBySize(side, [&](const Ranges::Range& range) {
    if (range.units < units_per_granule_) return false;
    released += ReleaseIn(range.begin, range.end(), wanted - released, looks);
    return released < wanted && --looks > 0;
  });
  return released;
}

// Whether the device has finished with it.
bool Arena::IsIdle(int64_t granule) const {
  const auto at = static_cast<uint32_t>(granule * units_per_granule_);
  return order_ == nullptr || order_->Idle(at, at + static_cast<uint32_t>(units_per_granule_));
}

// The same within [begin, end), which is free. From the top: low addresses are used first. `looks` counts
// down at every granule that the device may still touch, and ends it at 0.
int64_t Arena::ReleaseIn(uint32_t begin, uint32_t end, int64_t wanted, int& looks) {
  int64_t released = 0;
  const int64_t first = (begin + units_per_granule_ - 1) / units_per_granule_;
  const int64_t last = end / units_per_granule_;
  for (int64_t g = last - 1; g >= first && released < wanted && looks > 0; --g) {
    const uint64_t top = committed_.AtOrBefore(static_cast<uint64_t>(g));
    if (top == BitTree::kNone || static_cast<int64_t>(top) < first) break;
    g = static_cast<int64_t>(top);
    if (!IsIdle(g)) {
      kept_busy_ = true;
      --looks;
      continue;
    }
    const int64_t end_of_run = g + 1;
    const int64_t lowest = std::max(first, end_of_run - (wanted - released));
    while (g > lowest && committed_.Contains(static_cast<uint64_t>(g - 1)) && IsIdle(g - 1)) --g;
    Release(g, end_of_run - g);
    released += end_of_run - g;
  }
  return released;
}

// How many granules too many would be held with `wanted` more.
int64_t Arena::Excess(int64_t wanted, Need need) const {
  const int64_t most = GranulesOfPeak() + GranulesForStreams();
  const int64_t slack = !plan_settled_           ? 0
                        : need == Need::kPlanned ? most / kSlackForPlanned
                                                 : std::min(most / kSlackForStrays, lent_);
  return std::max<int64_t>(0, committed_count_ + wanted - std::min(most + slack, GranulesToBeHad()));
}

// Releases up to `wanted` wholly free granules of the plan, whose free ranges need not be on record for it. Behind
// ReleaseFree, which has learnt what is idle.
// Goes round: a search begins where the last one ended.
int64_t Arena::ReleaseFreeInPlan(int64_t wanted) {
  if (wanted <= 0) return 0;
  const uint32_t start = std::min(plan_scan_, main_.barrier());
  int64_t released = 0;
  uint32_t scan = start;
  bool wrapped = false;
  for (int looks = kMostLooks; looks > 0; --looks) {
    if (scan == 0 && !wrapped) {
      wrapped = true;
      scan = main_.barrier();
    }
    if (scan == 0 || (wrapped && scan <= start)) break;
    const Ranges::Run run = main_.RunBelow(scan);
    if (run.free) released += ReleaseIn(run.begin, scan, wanted - released, looks);
    if (released == wanted) break;  // the run may have more for the next request
    // What else lies in the granule that a live block begins in need not be looked at: thousands may.
    scan = run.free ? run.begin : run.begin >> granule_shift_ << granule_shift_;
  }
  plan_scan_ = scan;
  return released;
}

Bytes Arena::idle() const {
  int64_t in_use = 0;
  int64_t last = -1;  // granule of the block before
  const auto count = [&](const Ranges::Range& range, const BlockInfo&) {
    const auto first = static_cast<int64_t>(range.begin >> granule_shift_);
    const auto end = static_cast<int64_t>(range.end() - 1) >> granule_shift_;
    in_use += end - std::max(first, last + 1) + 1;
    last = end;
  };
  main_.ForEachLive(count);
  small_.ForEachLive(count);
  return source_->granule() * (committed_count_ - in_use);
}

void Arena::Release(int64_t first, int64_t count) {
  source_->Release(first, count);
  for (int64_t g = first; g < first + count; ++g) {
    committed_.Erase(static_cast<uint64_t>(g));
    missing_.Insert(static_cast<uint64_t>(g));
  }
  committed_count_ -= count;
}

// Releases up to `wanted` wholly free granules below `end`, whose free ranges need not be on record for it. Behind
// ReleaseFree, as above.
int64_t Arena::ReleaseBelow(Offset end, int64_t wanted) {
  int64_t released = 0;
  int looks = std::numeric_limits<int>::max();
  for (uint32_t scan = UnitsOf(end - Offset(0)); scan > 0 && released < wanted;) {
    const Ranges::Run run = main_.RunBelow(scan);
    if (run.free) released += ReleaseIn(run.begin, scan, wanted - released, looks);
    scan = run.free ? run.begin : run.begin >> granule_shift_ << granule_shift_;
  }
  return released;
}

Bytes Arena::GiveBack(bool plan_too, Bytes most, Offset plan_begin) {
  kept_busy_ = false;
  const int64_t wanted = most == kAllOfIt ? kAll : most / source_->granule();
  int64_t released = ReleaseFree(wanted, plan_too);
  if (!plan_too) released += ReleaseBelow(plan_begin, wanted - released);
  source_->Trim();
  return source_->granule() * released;
}

}  // namespace reprise::replay
