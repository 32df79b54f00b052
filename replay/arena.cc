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

}  // namespace

Arena::Arena(MemorySource* source, Bytes capacity)
    : source_(source),
      units_per_granule_(source->granule() / kUnit),
      granule_shift_(std::countr_zero(static_cast<uint64_t>(units_per_granule_))),
      limit_(capacity.count() > 0 ? capacity / source->granule() : std::numeric_limits<int64_t>::max()),
      small_begin_(static_cast<uint32_t>(SmallZoneBegin(*source))),
      main_(0, small_begin_),
      small_(small_begin_, static_cast<uint32_t>(source->granule_count() * units_per_granule_)),
      committed_(static_cast<uint64_t>(source->granule_count())),
      missing_(static_cast<uint64_t>(source->granule_count())) {
  if (!ok() || !missing_.ok()) return;
  for (int64_t g = 0; g < source->granule_count(); ++g) missing_.Insert(static_cast<uint64_t>(g));
}

Arena::Block Arena::Place(Bytes bytes, Bytes alignment, Where where) {
  if (bytes > source_->granule() * source_->granule_count()) return {};
  const uint32_t units = UnitsOf(bytes);
  const uint32_t align = std::max<uint32_t>(1, UnitsOf(alignment));
  if (bytes < kSmallBlock)
    return Taken(&small_, small_.TakeBest(units, align, true, true), /*plan_too=*/false);
  const bool anywhere = where == Where::kAnywhere;
  return Taken(&main_, main_.TakeBest(units, align, anywhere, true), /*plan_too=*/anywhere);
}

void Arena::SetPlanEnd(Offset end) { main_.SetBarrier(UnitsOf(end - Offset(0))); }

// Commits what is missing of granules [first, last), moving free ones first.
bool Arena::CommitFor(int64_t first, int64_t last, bool plan_too) {
  const int64_t wanted = CountMissing(first, last);
  granules_moved_ += ReleaseFree(wanted, plan_too);
  if (CommitMissing(first, last)) return true;
  // Out of memory is first met by giving back what we hold, then by asking again (law 3).
  ReleaseFree(std::numeric_limits<int64_t>::max(), /*plan_too=*/true);
  return CommitMissing(first, last);
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
    committed_peak_ = std::max(committed_peak_, committed_count_);
  }
}

int64_t Arena::ReleaseFree(int64_t wanted, bool plan_too) {
  int64_t released = ReleaseFreeIn(main_, Side::kAbove, wanted);
  if (released < wanted) released += ReleaseFreeIn(small_, Side::kAbove, wanted - released);
  if (released < wanted && plan_too) released += ReleaseFreeIn(main_, Side::kBelow, wanted - released);
  return released;
}

// Releases up to `wanted` committed granules that lie whole in free ranges of a group, largest ranges first:
// those are the last that best fit would use.
int64_t Arena::ReleaseFreeIn(Ranges& zone, Side side, int64_t wanted) {
  int64_t released = 0;
  zone.ForEachFreeBySize(side, [&](const Ranges::Range& range) {
    if (range.units < units_per_granule_) return false;
    const int64_t first = (range.begin + units_per_granule_ - 1) / units_per_granule_;
    const int64_t last = range.end() / units_per_granule_;
    // From the top: low addresses are used first.
    for (int64_t g = last - 1; g >= first && released < wanted; --g) {
      const uint64_t top = committed_.AtOrBefore(static_cast<uint64_t>(g));
      if (top == BitTree::kNone || static_cast<int64_t>(top) < first) break;
      g = static_cast<int64_t>(top);
      Release(g, 1);
      ++released;
    }
    return released < wanted;
  });
  return released;
}

void Arena::Release(int64_t first, int64_t count) {
  source_->Release(first, count);
  for (int64_t g = first; g < first + count; ++g) {
    committed_.Erase(static_cast<uint64_t>(g));
    missing_.Insert(static_cast<uint64_t>(g));
  }
  committed_count_ -= count;
}

Bytes Arena::GiveBack(bool plan_too) {
  return source_->granule() * ReleaseFree(std::numeric_limits<int64_t>::max(), plan_too);
}

}  // namespace reprise::replay
