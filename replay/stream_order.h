// Which stream may use which free memory: the order of reuse (law 2).
//
// A block freed on a stream may still be in use by work queued there before the free. Memory therefore
// remembers its last free, and before it is handed out to another stream that stream is made to wait, on the
// device, for an event recorded at that very free. An event recorded any later will not do: what was queued
// in between might itself wait for the other stream, and both would stand still for ever. Without an event of
// its own a range is left alone until a later event of its stream is seen to have completed.
//
// Glossary
//   mark       what a range of memory remembers: the stream of its last free, and that free's number there
//   exact      an event recorded at a free, before any other work: it may be waited for
//   late       an event recorded afterwards: it tells only that everything before it is complete
//   complete   the device has finished all work queued on the stream before the free
//   told       the last free of a stream that an event, or a wait of the host, tells from those after it; they
//              will all be known to be complete at once, so of them those side by side share a mark
//   seen       the highest free of another stream that a stream has been made to wait for
//
// While one stream alone is seen nothing has to be told apart: each granule remembers the number of the last
// free in it, which is enough to know whether it is idle, and marks begin with the second stream.
//
// Marks are kept by their begin in a hash table: an array with one for each unit would become, in a job whose
// blocks come to lie everywhere, 6 % of the device's memory on the host.
//
// Ranges are in units, half-open. Streams are small numbers. That of a stream that is gone may be given anew
// once the stream is quiet: what it has freed before would pass for its successor's.
// Not thread-safe: the engine's lock is held around every call. No call but WaitForFreed waits for the device.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "base/units.h"
#include "replay/bit_tree.h"
#include "replay/sparse_array.h"

namespace reprise::replay {

// Blocks that were not asked for on a stream may be used on all of them at once. The numbers from here on say
// so too, for callers who tell several kinds of them apart.
inline constexpr Stream kEveryStream{0xffff0000};
constexpr bool IsEveryStream(Stream stream) {
  return stream >= kEveryStream && stream <= Stream{0xffffffff};  // beyond: a recording's, by its handle
}

// What the order needs of a device.
class StreamEvents {
 public:
  using Event = void*;

  virtual ~StreamEvents() = default;
  // An event in the stream as it stands now. Null: not from here, or not now (it is being captured).
  virtual Event Record(Stream stream) = 0;
  // The same in a stream that is about to be destroyed, whatever is being captured elsewhere.
  virtual Event RecordLast(Stream stream) { return Record(stream); }
  // Whether all that was queued on the stream is known to be over.
  virtual bool Finished(Stream stream) { return false; }
  // Makes all work queued on the stream from now on wait for the event, on the device. False: it will not.
  virtual bool Wait(Stream stream, Event event) = 0;
  virtual bool Complete(Event event) = 0;
  // The same once the host has waited for it, though not for ever and not where it must not.
  virtual bool Await(Event event) { return Complete(event); }
  // The event, of this stream, is complete and not needed any more.
  virtual void Recycle(Stream stream, Event event) = 0;
};

class StreamOrder {
 public:
  enum class Reuse : uint8_t {
    kFree,    // at once
    kWait,    // behind events, see Wait
    kNotYet,  // not before some work is known to be complete
  };
  struct Answer {
    Reuse reuse = Reuse::kFree;
    uint32_t free_from = 0;  // kWait, kNotYet: the end of the last range that is not free at once
    uint32_t wait_from = 0;  // kNotYet: the end of the last range that cannot be waited for
  };
  // How far each stream's frees had come when it was taken.
  using Snapshot = std::vector<std::pair<Stream, uint64_t>>;

  struct Counters {
    int64_t waits = 0;       // of one stream for another's event
    int64_t events = 0;      // recorded
    int64_t host_waits = 0;  // WaitForFreed
  };

  // Over units [0, units), in granules of 2^granule_shift units. `events` outlives it.
  StreamOrder(uint32_t units, int granule_shift, StreamEvents* events);
  bool ok() const { return starts_.ok() && last_free_.ok(); }

  // [begin, end) is free from here on in the order of `stream`. `record`: another stream may want it soon, so
  // an event is recorded now; without other streams none ever is.
  void Freed(uint32_t begin, uint32_t end, Stream stream, bool record) {
    if (IndexOf(stream) != only_) return FreedAmongMany(begin, end, stream, record);
    const uint64_t number = ++lanes_[only_].freed;
    for (uint32_t g = begin >> granule_shift_; g <= (end - 1) >> granule_shift_; ++g) last_free_[g] = number;
  }

  // Whether `stream` may use [begin, end).
  Answer Ask(uint32_t begin, uint32_t end, Stream stream) {
    return IndexOf(stream) == only_ ? Answer() : AskAmongMany(begin, end, stream);
  }
  // Makes `stream` wait for what Ask answered kWait for. False: it cannot be made to.
  bool Wait(uint32_t begin, uint32_t end, Stream stream);
  // Whether nothing queued can still touch [begin, end).
  bool Idle(uint32_t begin, uint32_t end);

  // Of how many streams that are not known to be over a request asks the device: a call goes on where the last ended.
  static constexpr size_t kSomeStreams = 64;
  static constexpr size_t kAllStreams = ~size_t{0};
  // Learns what is complete by now, and sees to it that more will be known next time.
  void Refresh(size_t most = kAllStreams);
  // Asks the streams themselves: what the host has waited for is complete before any event of ours says so.
  void LearnFinished(size_t most = kAllStreams);
  // What a wait of the host keeps from being held besides.
  enum class Spares : uint8_t { kLittle, kMuch, kFailure };
  // The host waits until the device has finished with all that was freed on streams that can be waited for. False: there
  // are none, or not again so soon. After a wait the device has nothing to do until the host has told it more, so waits
  // are rationed, and what is spared does not add up. Those that spare much have a ration besides: many that spared little
  // must not have used up what there is. What would fail without a wait is not rationed.
  bool WaitForFreed(Spares spares);

  // Around a wait of the host for all that is queued on some streams: what had been freed on them before it
  // is complete after it.
  Snapshot Take(const std::vector<Stream>& streams);
  void Completed(const Snapshot& before);

  // Whether all that was ever freed on `stream` is known to be complete.
  bool Quiet(Stream stream) const {
    return IndexOf(stream) >= lanes_.size() ||
           lanes_[IndexOf(stream)].complete == lanes_[IndexOf(stream)].freed;
  }
  // The stream is about to be destroyed. Its number may be given to another as soon as it is quiet.
  void Retire(Stream stream);
  // Its context is gone, and its events with it: everything it ever did is over.
  void Abandon(Stream stream);

  const Counters& counters() const { return counters_; }
  int64_t marks() const { return static_cast<int64_t>(marks_.size()); }    // that are kept
  int64_t streams() const { return static_cast<int64_t>(lanes_.size()); }  // numbers that were ever in use

 private:
  struct Mark {
    uint32_t end = 0;
    uint32_t stream = 0;
    uint64_t number = 0;
  };
  struct Recorded {
    uint64_t number = 0;  // of the last free before it
    StreamEvents::Event event = nullptr;
    bool exact = false;
  };
  struct Lane {
    uint64_t freed = 0;     // the number of its last free
    uint64_t complete = 0;  // frees up to this one are complete
    uint64_t told = 0;      // >= complete
    std::deque<Recorded> recorded;
    HashMap<uint32_t, uint64_t> seen;  // by stream, of those that it has waited for
  };

  static uint32_t IndexOf(Stream stream) { return static_cast<uint32_t>(stream); }
  Lane& LaneOf(Stream stream) {
    if (IndexOf(stream) >= lanes_.size()) lanes_.resize(IndexOf(stream) + 1);
    return lanes_[IndexOf(stream)];
  }
  void FreedAmongMany(uint32_t begin, uint32_t end, Stream stream, bool record);
  Answer AskAmongMany(uint32_t begin, uint32_t end, Stream stream);
  void Meet(Stream stream);
  void BeginMarks();
  bool IdleGranules(uint32_t begin, uint32_t end) const;
  // An open mark, without an event of its own.
  bool Ordered(const Mark& mark, Stream stream) const {
    if (IsEveryStream(stream)) return false;
    return mark.stream == IndexOf(stream) || Seen(lanes_[IndexOf(stream)], mark);
  }
  static bool Seen(const Lane& lane, const Mark& mark) {
    const auto seen = lane.seen.find(mark.stream);
    return seen != lane.seen.end() && mark.number <= seen->second;
  }
  const Recorded* ExactEvent(const Mark& mark) const;
  Mark LastOfItsStream(Mark mark, uint32_t begin, uint32_t end);
  void Record(Stream stream, bool exact);
  void Keep(Lane& lane, StreamEvents::Event event, bool exact);
  void Poll(uint32_t stream);
  // Calls visit(stream) for up to `most` streams of which not all is known to be over, from `next` on, round.
  template <typename Visit>
  void ForEachOpenStream(size_t most, uint32_t& next, Visit visit) {
    for (size_t left = lanes_.size(); left > 0 && most > 0; --left) {
      const uint32_t stream = next < lanes_.size() ? next : 0;
      next = stream + 1;
      const Lane& lane = lanes_[stream];
      if (lane.complete == lane.freed && lane.recorded.empty()) continue;
      --most;
      visit(stream);
    }
  }
  // So many waits at once, and one more for every so many frees.
  class Ration {
   public:
    explicit Ration(uint64_t frees_a_wait) : frees_a_wait_(frees_a_wait) {}
    // `freed`: so many frees there have been.
    bool Has(uint64_t freed);
    void Use() { --left_; }

   private:
    const uint64_t frees_a_wait_;
    int64_t left_ = kWaitsAtOnce;
    uint64_t at_ = 0;  // frees
  };
  bool Alike(const Mark& one, const Mark& other) const {
    const uint64_t told = lanes_[one.stream].told;
    return one.stream == other.stream && one.number > told && other.number > told;
  }
  void SetMark(uint32_t begin, const Mark& mark);
  void Unite(uint32_t begin, uint32_t next);
  void Overwrite(uint32_t begin, uint32_t end);
  void AddMark(uint32_t begin, const Mark& mark);
  void RemoveMark(uint32_t begin);

  // Calls visit(mark) for every mark that reaches into [begin, end) and is not complete until it returns false.
  // Those that are complete say nothing any more and are forgotten, so that nobody goes through them again.
  template <typename Visit>
  void ForEachOpenMark(uint32_t begin, uint32_t end, Visit visit) {
    uint64_t at = starts_.AtOrBefore(begin);
    if (at == BitTree::kNone || MarkAt(at).end <= begin) at = starts_.AtOrAfter(uint64_t{begin} + 1);
    for (; at < end; at = starts_.AtOrAfter(at + 1)) {
      const Mark& mark = MarkAt(at);
      if (mark.number <= lanes_[mark.stream].complete) {
        RemoveMark(static_cast<uint32_t>(at));
      } else if (!visit(mark)) {
        return;
      }
    }
  }
  // The mark that begins at `begin`, of which starts_ knows.
  Mark& MarkAt(uint64_t begin) { return marks_.find(static_cast<uint32_t>(begin))->second; }

  // The host waits for the device so many times, and once more for every so many frees: more often than a job's start and
  // its first planned cycle were seen to need it, and from then on four parts in a thousand of the time that a job takes,
  // where an allocation stands for 50 us of its work and the device has nothing to do for as long. Four times as much
  // where it spares much.
  static constexpr int64_t kWaitsAtOnce = 256;
  static constexpr uint64_t kFreesAWait = 256;
  static constexpr uint64_t kFreesAWaitForMuch = 64;

  // In only_: no stream yet, or several, or one that is gone. Numbers that no stream has, nor whoever frees for all.
  static constexpr uint32_t kNobody = 0xfffefffe;
  static constexpr uint32_t kMany = 0xfffeffff;
  static_assert(!IsEveryStream(Stream{kNobody}) && !IsEveryStream(Stream{kMany}));

  StreamEvents* const events_;
  const uint32_t units_;
  const int granule_shift_;
  uint32_t only_ = kNobody;
  SparseArray<uint64_t> last_free_;  // by granule, while only_ is a stream
  BitTree starts_;                   // begins of the marked ranges, which do not overlap
  HashMap<uint32_t, Mark> marks_;    // by begin
  std::vector<Lane> lanes_;          // by stream
  uint32_t next_to_refresh_ = 0;     // streams
  uint32_t next_to_ask_ = 0;
  Counters counters_;
  Ration ration_{kFreesAWait};
  Ration ration_for_much_{kFreesAWaitForMuch};
};

}  // namespace reprise::replay
