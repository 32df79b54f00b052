#include "replay/stream_order.h"

#include <algorithm>

namespace reprise::replay {
namespace {

// With so many events open the oldest is asked at every record, so that their number stays small.
constexpr size_t kPollFrom = 16;
// A device that completes nothing must not make us hold events without end.
constexpr size_t kMostRecorded = 4096;

}  // namespace

StreamOrder::StreamOrder(uint32_t units, int granule_shift, StreamEvents* events)
    : events_(events),
      units_(units),
      granule_shift_(granule_shift),
      last_free_((units >> granule_shift) + 1),
      starts_(units) {}

// A stream that has not been seen yet, or not alone.
void StreamOrder::Meet(Stream stream) {
  LaneOf(stream);
  if (only_ == kNobody) {
    only_ = IndexOf(stream);
  } else if (only_ != kMany && only_ != IndexOf(stream)) {
    BeginMarks();
  }
}

// What the only stream has freed until now: runs of granules with the same last free become marks.
void StreamOrder::BeginMarks() {
  const uint32_t granules = only_ < kNobody && lanes_[only_].freed > 0 ? units_ >> granule_shift_ : 0;
  uint32_t first = 0;
  for (uint32_t g = 1; g <= granules; ++g) {
    if (g < granules && last_free_[g] == last_free_[first]) continue;
    if (last_free_[first] != 0) {
      SetMark(first << granule_shift_, {g << granule_shift_, only_, last_free_[first]});
    }
    first = g;
  }
  only_ = kMany;
}

void StreamOrder::FreedAmongMany(uint32_t begin, uint32_t end, Stream stream, bool record) {
  Meet(stream);
  if (only_ != kMany) return Freed(begin, end, stream, record);
  Lane& lane = LaneOf(stream);
  ++lane.freed;
  if (record) Record(stream, /*exact=*/true);
  SetMark(begin, {end, IndexOf(stream), lane.freed});
}

// Puts a mark in the place of all that it covers; of marks that are alike it makes one. If there is no memory for it,
// nothing beyond that place has lost its mark, and the place, which is not free then, needs none.
void StreamOrder::SetMark(uint32_t begin, const Mark& mark) {
  const uint64_t around = starts_.AtOrBefore(begin);
  Mark* const there = around == BitTree::kNone ? nullptr : &MarkAt(around);
  if (there != nullptr && there->end >= mark.end && Alike(*there, mark)) {
    there->number = std::max(there->number, mark.number);
    return;
  }
  if (around == begin && there->end == mark.end) {
    *there = mark;
  } else {
    Overwrite(begin, mark.end);
    AddMark(begin, mark);
  }
  if (mark.number <= lanes_[mark.stream].told) return;
  if (mark.end < units_ && starts_.Contains(mark.end)) Unite(begin, mark.end);
  const uint64_t before = begin == 0 ? BitTree::kNone : starts_.AtOrBefore(begin - 1);
  if (before != BitTree::kNone && MarkAt(before).end == begin) Unite(static_cast<uint32_t>(before), begin);
}

// The mark at `begin` takes in the one that begins where it ends, if they are alike: until the later free is complete
// nobody would hear of the earlier one either.
void StreamOrder::Unite(uint32_t begin, uint32_t next) {
  Mark& mark = MarkAt(begin);
  const Mark& other = MarkAt(next);
  if (!Alike(mark, other)) return;
  mark.end = other.end;
  mark.number = std::max(mark.number, other.number);
  RemoveMark(next);
}

// The table first: it may throw.
void StreamOrder::AddMark(uint32_t begin, const Mark& mark) {
  marks_.insert_or_assign(begin, mark);
  starts_.Insert(begin);
}

void StreamOrder::RemoveMark(uint32_t begin) {
  starts_.Erase(begin);
  marks_.erase(begin);
}

// Cuts [begin, end) out of every mark.
void StreamOrder::Overwrite(uint32_t begin, uint32_t end) {
  const uint64_t before = begin == 0 ? BitTree::kNone : starts_.AtOrBefore(begin - 1);
  if (before != BitTree::kNone) {
    const Mark left = MarkAt(before);
    if (left.end > end) AddMark(end, left);
    if (left.end > begin) MarkAt(before).end = begin;
  }
  for (uint64_t at = starts_.AtOrAfter(begin); at < end; at = starts_.AtOrAfter(at + 1)) {
    const Mark cut = MarkAt(at);
    if (cut.end > end) AddMark(end, cut);
    RemoveMark(static_cast<uint32_t>(at));
  }
}

const StreamOrder::Recorded* StreamOrder::ExactEvent(const Mark& mark) const {
  const std::deque<Recorded>& recorded = lanes_[mark.stream].recorded;
  const auto at = std::lower_bound(recorded.begin(), recorded.end(), mark.number,
                                   [](const Recorded& r, uint64_t number) { return r.number < number; });
  return at != recorded.end() && at->number == mark.number && at->exact ? &*at : nullptr;
}

StreamOrder::Answer StreamOrder::AskAmongMany(uint32_t begin, uint32_t end, Stream stream) {
  if (!IsEveryStream(stream)) Meet(stream);
  if (only_ != kMany) {
    if (IdleGranules(begin, end)) return {};  // as all are to the first stream
    return {Reuse::kNotYet, end, end};
  }
  Answer answer;
  ForEachOpenMark(begin, end, [&](const Mark& mark) {
    if (Ordered(mark, stream)) return true;
    answer.free_from = mark.end;
    if (!IsEveryStream(stream) && ExactEvent(mark) != nullptr) {
      if (answer.reuse == Reuse::kFree) answer.reuse = Reuse::kWait;
    } else {
      answer.reuse = Reuse::kNotYet;
      answer.wait_from = mark.end;
    }
    return true;
  });
  return answer;
}

bool StreamOrder::Wait(uint32_t begin, uint32_t end, Stream stream) {
  bool good = true;
  ForEachOpenMark(begin, end, [&](const Mark& mark) {
    if (Ordered(mark, stream)) return true;
    const Mark last = LastOfItsStream(mark, begin, end);
    const Recorded* const recorded = ExactEvent(last);
    good = recorded != nullptr && events_->Wait(stream, recorded->event);
    if (!good) return false;
    ++counters_.waits;
    LaneOf(stream).seen[last.stream] = last.number;
    return true;
  });
  return good;
}

// Who waits for it has waited for all of that stream's in [begin, end).
StreamOrder::Mark StreamOrder::LastOfItsStream(Mark mark, uint32_t begin, uint32_t end) {
  ForEachOpenMark(begin, end, [&](const Mark& other) {
    if (other.stream == mark.stream && other.number > mark.number) mark = other;
    return true;
  });
  return mark;
}

bool StreamOrder::IdleGranules(uint32_t begin, uint32_t end) const {
  if (only_ == kNobody) return true;
  for (uint32_t g = begin >> granule_shift_; g <= (end - 1) >> granule_shift_; ++g) {
    if (last_free_[g] > lanes_[only_].complete) return false;
  }
  return true;
}

bool StreamOrder::Idle(uint32_t begin, uint32_t end) {
  if (only_ != kMany) return IdleGranules(begin, end);
  bool idle = true;
  ForEachOpenMark(begin, end, [&](const Mark&) { return idle = false; });
  return idle;
}

void StreamOrder::Record(Stream stream, bool exact) {
  Lane& lane = LaneOf(stream);
  if (lane.recorded.size() >= kPollFrom) Poll(IndexOf(stream));
  if (lane.recorded.size() < kMostRecorded) Keep(lane, events_->Record(stream), exact);
}

void StreamOrder::Keep(Lane& lane, StreamEvents::Event event, bool exact) {
  if (event == nullptr) return;
  ++counters_.events;
  lane.told = lane.freed;
  lane.recorded.push_back({lane.freed, event, exact});
}

void StreamOrder::Poll(uint32_t stream) {
  Lane& lane = lanes_[stream];
  while (!lane.recorded.empty() && events_->Complete(lane.recorded.front().event)) {
    lane.complete = std::max(lane.complete, lane.recorded.front().number);
    events_->Recycle(Stream{stream}, lane.recorded.front().event);
    lane.recorded.pop_front();
  }
}

void StreamOrder::Refresh(size_t most) {
  ForEachOpenStream(most, next_to_refresh_, [&](uint32_t stream) {
    Poll(stream);
    const Lane& lane = lanes_[stream];
    const bool open = lane.complete < lane.freed;
    if (!open || (!lane.recorded.empty() && lane.recorded.back().number == lane.freed)) return;
    Record(Stream{stream}, /*exact=*/false);
    Poll(stream);
  });
}

void StreamOrder::LearnFinished(size_t most) {
  ForEachOpenStream(most, next_to_ask_, [&](uint32_t stream) {
    const Lane& lane = lanes_[stream];
    if (lane.complete < lane.freed && events_->Finished(Stream{stream}))
      Completed({{Stream{stream}, lane.freed}});
  });
}

bool StreamOrder::WaitForFreed(Spares spares) {
  uint64_t freed = 0;
  for (const Lane& lane : lanes_) freed += lane.freed;
  Ration& ration = spares == Spares::kMuch && ration_for_much_.Has(freed) ? ration_for_much_ : ration_;
  if (spares != Spares::kFailure && !ration.Has(freed)) return false;
  Refresh();
  bool any = false;
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    const std::deque<Recorded>& recorded = lanes_[i].recorded;
    if (recorded.empty() || !events_->Await(recorded.back().event)) continue;
    Poll(i);
    any = true;
  }
  if (!any) return false;
  ++counters_.host_waits;
  if (spares != Spares::kFailure) ration.Use();
  return true;
}

bool StreamOrder::Ration::Has(uint64_t freed) {
  const uint64_t more = (freed - at_) / frees_a_wait_;
  at_ += more * frees_a_wait_;
  left_ = std::min(kWaitsAtOnce, left_ + static_cast<int64_t>(more));
  return left_ > 0;
}

StreamOrder::Snapshot StreamOrder::Take(const std::vector<Stream>& streams) {
  Snapshot snapshot;
  for (const Stream stream : streams) {
    if (IndexOf(stream) >= lanes_.size()) continue;
    Lane& lane = lanes_[IndexOf(stream)];
    snapshot.emplace_back(stream, lane.freed);
    lane.told = lane.freed;
  }
  return snapshot;
}

void StreamOrder::Completed(const Snapshot& before) {
  for (const auto& [stream, freed] : before) {
    Lane& lane = LaneOf(stream);
    lane.complete = std::max(lane.complete, freed);
    lane.told = std::max(lane.told, freed);
    Poll(IndexOf(stream));
  }
}

// Another will come: it will want what this one has freed, and nobody can be asked later.
void StreamOrder::Retire(Stream stream) {
  BeginMarks();
  Lane& lane = LaneOf(stream);
  if (lane.complete < lane.freed && events_->Finished(stream)) Completed({{stream, lane.freed}});
  if (lane.complete < lane.freed) Keep(lane, events_->RecordLast(stream), /*exact=*/false);
  lane.seen.clear();
}

void StreamOrder::Abandon(Stream stream) {
  Lane& lane = LaneOf(stream);
  lane.complete = lane.freed;
  lane.told = lane.freed;
  lane.recorded.clear();
  lane.seen.clear();
}

}  // namespace reprise::replay
