#include "profiler/snapshot_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "profiler/event_check.h"
#include "profiler/lifetimes.h"
#include "profiler/pickle.h"
#include "profiler/snapshot_devices.h"
#include "profiler/snapshot_frames.h"

namespace reprise::profiler {
namespace {

constexpr int64_t kMostAddress = int64_t{1} << 61;  // of addresses and sizes: sums of a few stay in range
constexpr int64_t kMostMicroseconds = int64_t{1} << 53;

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, std::string_view name, size_t most_entries)
      : root_(pickle.root()),
        converted_(root_.Find(kConvertedKey)),
        name_(name),
        entries_left_(most_entries) {}

  absl::StatusOr<Snapshot> Read() {
    std::optional<PickleValue> segments = root_, traces;
    if (!root_.is_sequence() || root_.size() == 0) {
      if (absl::Status s = List(root_, "segments", "the snapshot", &segments); !s.ok()) return s;
      if (absl::Status s = List(root_, "device_traces", "the snapshot", &traces); !s.ok()) return s;
    }
    ChooseDevice(*segments, traces);
    for (size_t i = 0; i < segments->size(); ++i) {
      if (absl::Status s = ReadSegment((*segments)[i], fmt::format("segments[{}]", i)); !s.ok()) return s;
    }
    const auto device = static_cast<size_t>(snapshot_.device);
    if (traces && device < traces->size()) {
      const PickleValue trace = (*traces)[device];
      if (!trace.is_sequence()) return Error(fmt::format("device_traces[{}]", device), "not a list");
      requests_free_ = LacksCompletions(trace);
      for (size_t i = 0; i < trace.size(); ++i) {
        where_ = fmt::format("device_traces[{}][{}]", device, i);
        if (absl::Status s = ReadEntry(trace[i]); !s.ok()) return s;
      }
      has_history_ = trace.size() > 0;
    }
    AddSegmentsBlocks();
    return Finish();
  }

 private:
  absl::Status Error(std::string_view where, std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}: {}: {}", name_, where, what));
  }

  // A list may hold one dictionary many times, and so more entries than the file has bytes.
  absl::Status Count(std::string_view where) {
    if (entries_left_ == 0) return Error(where, "more entries than bytes in the file");
    --entries_left_;
    return absl::OkStatus();
  }
  absl::Status CheckDict(PickleValue dict, std::string_view where) {
    if (dict.kind() != Pickle::Kind::kDict) return Error(where, "not a dict");
    if (dict.size() > kMostKeys) return Error(where, fmt::format("a dict with {} keys", dict.size()));
    return Count(where);
  }
  absl::Status List(PickleValue dict, std::string_view key, std::string_view where,
                    std::optional<PickleValue>* list) {
    if (absl::Status s = CheckDict(dict, where); !s.ok()) return s;
    *list = dict.Find(key);
    if (list->has_value() && (*list)->is_sequence()) return absl::OkStatus();
    return Error(where,
                 fmt::format("no list '{}' in it; expected what torch.cuda.memory._snapshot() returns", key));
  }
  absl::Status Number(PickleValue dict, std::string_view key, std::string_view where, int64_t least,
                      int64_t most, int64_t* number) const {
    const std::optional<PickleValue> value = dict.Find(key);
    const std::optional<int64_t> integer = value ? value->integer() : std::nullopt;
    if (!integer || *integer < least || *integer > most) {
      return Error(where, fmt::format("'{}' is {}; it must be a whole number from {} to {}", key,
                                      integer ? fmt::format("{}", *integer) : "missing or no such number",
                                      least, most));
    }
    *number = *integer;
    return absl::OkStatus();
  }
  absl::Status StreamOf(PickleValue dict, std::string_view where, Stream* stream) const {
    int64_t number = 0;
    if (dict.Find("stream")) {
      if (absl::Status s = Number(dict, "stream", where, INT64_MIN, INT64_MAX, &number); !s.ok()) return s;
    }
    *stream = Stream(static_cast<uint64_t>(number));
    return absl::OkStatus();
  }

  StackId StackOf(PickleValue dict) {
    const std::optional<PickleValue> frames = dict.Find("frames");
    return frames ? frames_.Read(*frames) : StackId(0);
  }

  void ChooseDevice(PickleValue segments, std::optional<PickleValue> traces) {
    const std::vector<DeviceUse> devices = DevicesOf(segments, traces, entries_left_);
    if (!devices.empty()) snapshot_.device = devices[0].device;
    snapshot_.devices = std::max<size_t>(devices.size(), 1);
    if (devices.size() > 1) snapshot_.notes.push_back(NoteOn(devices));
  }

  absl::Status ReadSegment(PickleValue dict, const std::string& where) {
    if (absl::Status s = CheckDict(dict, where); !s.ok()) return s;
    if (DeviceOf(dict) != snapshot_.device) return absl::OkStatus();
    SnapshotSegment segment;
    int64_t address = 0, size = 0;
    if (absl::Status s = Number(dict, "address", where, 0, kMostAddress, &address); !s.ok()) return s;
    if (absl::Status s = Number(dict, "total_size", where, 0, kMostAddress - reserved_.count(), &size);
        !s.ok())
      return s;
    if (absl::Status s = StreamOf(dict, where, &segment.stream); !s.ok()) return s;
    segment.address = Offset(address);
    segment.size = Bytes(size);
    reserved_ += segment.size;
    const std::optional<PickleValue> type = dict.Find("segment_type");
    segment.small = type && type->string() == "small";
    const std::optional<PickleValue> expandable = dict.Find("is_expandable");
    segment.expandable = expandable && expandable->integer().value_or(0) != 0;
    std::optional<PickleValue> blocks;
    if (absl::Status s = List(dict, "blocks", where, &blocks); !s.ok()) return s;
    Offset next = segment.address;
    for (size_t i = 0; i < blocks->size(); ++i) {
      absl::Status s = ReadBlock((*blocks)[i], fmt::format("{}.blocks[{}]", where, i), &next, segment);
      if (!s.ok()) return s;
    }
    snapshot_.segments.push_back(std::move(segment));
    return absl::OkStatus();
  }

  // Whether `skip_actions` left the completions of frees out, so that a block is done with when its free is asked for: no
  // completion is told, and what waits for one would still be in the segments.
  bool LacksCompletions(PickleValue trace) const {
    if (TellsCompletions(trace)) return false;
    absl::flat_hash_set<int64_t> held;
    for (const SnapshotSegment& segment : snapshot_.segments) {
      for (const SnapshotBlock& block : segment.live) held.insert(block.address.count());
    }
    for (size_t i = 0; i < trace.size(); ++i) {
      const PickleValue entry = trace[i];
      if (entry.kind() != Pickle::Kind::kDict || entry.size() > kMostKeys) continue;
      const std::optional<PickleValue> action = entry.Find("action"), address = entry.Find("addr");
      if (!action || action->string() != "free_requested") continue;
      if (address && address->integer() && !held.contains(*address->integer())) return true;
    }
    return false;
  }

  // Blocks lie one behind the other; older snapshots do not say where. Up to PyTorch 2.0 what was asked for, and by whom,
  // is an entry of its own, the newest first.
  absl::Status ReadBlock(PickleValue dict, const std::string& where, Offset* next, SnapshotSegment& segment) {
    if (absl::Status s = CheckDict(dict, where); !s.ok()) return s;
    int64_t size = 0, address = next->count();
    if (dict.Find("address")) {
      if (absl::Status s = Number(dict, "address", where, 0, kMostAddress, &address); !s.ok()) return s;
    }
    const int64_t room = segment.size.count() - (address - segment.address.count());
    if (address < next->count() || room < 0)
      return Error(where, "its address lies outside the segment or not behind the one before");
    if (absl::Status s = Number(dict, "size", where, 0, room, &size); !s.ok()) return s;
    *next = Offset(address + size);
    const std::optional<PickleValue> state = dict.Find("state");
    const std::string_view name = state ? state->string().value_or("") : "";
    if (name.substr(0, 6) != "active" || size == 0) return absl::OkStatus();
    int64_t requested = size;
    PickleValue request = dict;
    std::string_view key = "requested_size";
    if (const std::optional<PickleValue> history = dict.Find("history");
        history && history->is_sequence() && history->size() > 0 && !dict.Find("frames")) {
      request = (*history)[0];
      key = "real_size";
      if (absl::Status s = CheckDict(request, where + ".history[0]"); !s.ok()) return s;
    }
    if (request.Find(key)) {
      if (absl::Status s = Number(request, key, where, 0, kMostAddress, &requested); !s.ok()) return s;
    }
    segment.live.push_back(
        {Offset(address), Bytes(size), Bytes(requested > 0 ? requested : size), StackOf(request)});
    return absl::OkStatus();
  }

  absl::Status ReadEntry(PickleValue dict) {
    if (absl::Status s = CheckDict(dict, where_); !s.ok()) return s;
    const std::optional<PickleValue> value = dict.Find("action");
    const std::optional<std::string_view> action = value ? value->string() : std::nullopt;
    if (!action) return Error(where_, "'action' is missing");
    if (*action == "alloc") return ReadAlloc(dict);
    if (*action == "free_requested" || *action == "free_completed" || *action == "free") {
      return ReadFree(dict, *action != "free_requested" || requests_free_);
    }
    if (*action == "segment_alloc" || *action == "segment_map") return ReadSegmentChange(dict, 1);
    if (*action == "segment_free" || *action == "segment_unmap") return ReadSegmentChange(dict, -1);
    if (*action == "oom") {
      ++snapshot_.ooms;
    } else if (*action != "snapshot" && *action != "annotate" && *action != "user_defined") {
      ++unknown_;
    }
    return absl::OkStatus();
  }

  absl::Status ReadPlace(PickleValue dict, int64_t least, Event* event, Offset* address) {
    int64_t where = 0, size = 0, time = 0;
    if (absl::Status s = Number(dict, "addr", where_, 0, kMostAddress, &where); !s.ok()) return s;
    if (absl::Status s = Number(dict, "size", where_, least, kMostAddress, &size); !s.ok()) return s;
    if (absl::Status s = StreamOf(dict, where_, &event->stream); !s.ok()) return s;
    if (dict.Find("time_us")) {
      if (absl::Status s = Number(dict, "time_us", where_, 0, kMostMicroseconds, &time); !s.ok()) return s;
      if (!first_time_) first_time_ = time;
      event->time_ns = std::max<int64_t>(time - *first_time_, 0) * 1000;
    }
    *address = Offset(where);
    event->bytes = Bytes(size);
    return absl::OkStatus();
  }

  // Earlier versions did not write what an input had asked for.
  absl::Status AlignmentOf(PickleValue alloc, Bytes* alignment) const {
    int64_t asked = kDeviceAlignment.count();
    if (converted_ && alloc.Find(kAlignmentKey)) {
      if (absl::Status s = Number(alloc, kAlignmentKey, where_, 0, kMostAddress, &asked); !s.ok()) return s;
    }
    *alignment = Bytes(asked);
    return absl::OkStatus();
  }

  absl::Status ReadAlloc(PickleValue dict) {
    Event event;
    Offset address;
    if (absl::Status s = ReadPlace(dict, 1, &event, &address); !s.ok()) return s;
    if (absl::Status s = AlignmentOf(dict, &event.alignment); !s.ok()) return s;
    event.stack = StackOf(dict);
    std::optional<BlockId>& live = addresses_[address.count()];
    // Where the free of the block before is missing: what lies there now is what the allocator said last.
    const Event free{.kind = EventKind::kFree, .stream = event.stream, .time_ns = event.time_ns};
    if (live) {
      ++lost_;
      AddFree(address, *live, free);
    } else if (early_pending_.contains(address.count())) {
      ++lost_;
      AddEarlyFree(address, free);
    }
    live = event.id = NewBlock();
    history_.emplace_back(event, address);
    return absl::OkStatus();
  }

  absl::Status ReadFree(PickleValue dict, bool completed) {
    Event event;
    Offset address;
    if (absl::Status s = ReadPlace(dict, 0, &event, &address); !s.ok()) return s;
    const Bytes bytes = std::exchange(event.bytes, Bytes(0));
    event.kind = EventKind::kFree;
    const auto [it, unseen] = addresses_.try_emplace(address.count());
    if (unseen && bytes > Bytes(0)) {
      AddEarly(address, bytes, event.stream, StackId(0));
      early_pending_.insert(address.count());
    }
    if (!completed) return absl::OkStatus();
    if (early_pending_.contains(address.count())) {
      AddEarlyFree(address, event);
    } else if (it->second) {
      AddFree(address, *it->second, event);
      it->second.reset();
    } else {
      ++lost_;
    }
    return absl::OkStatus();
  }

  BlockId NewBlock() { return BlockId(blocks_++); }
  void AddEarly(Offset address, Bytes bytes, Stream stream, StackId stack) {
    early_[address] = {
        .id = NewBlock(), .bytes = bytes, .alignment = kDeviceAlignment, .stream = stream, .stack = stack};
  }
  void AddEarlyFree(Offset address, const Event& event) {
    early_pending_.erase(address.count());
    AddFree(address, early_[address].id, event);
  }
  void AddFree(Offset address, BlockId id, Event event) {
    event.id = id;
    history_.emplace_back(event, address);
  }

  absl::Status ReadSegmentChange(PickleValue dict, int64_t sign) {
    int64_t size = 0;
    if (absl::Status s = Number(dict, "size", where_, 0, kMostAddress, &size); !s.ok()) return s;
    if (size > kMostAddress - std::max(change_, -change_))
      return Error(where_, "the segments sum to more than 2^62");
    change_ += sign * size;
    most_change_ = std::max(most_change_, change_);
    ++snapshot_.segment_changes;
    return absl::OkStatus();
  }

  // What the segments hold and the history does not know was there before.
  void AddSegmentsBlocks() {
    for (const SnapshotSegment& segment : snapshot_.segments) {
      for (const SnapshotBlock& block : segment.live) {
        const auto it = addresses_.find(block.address.count());
        if (it == addresses_.end()) {
          AddEarly(block.address, block.requested, segment.stream, block.stack);
        } else if (!it->second && !early_pending_.contains(block.address.count()) && !requests_free_) {
          ++lost_;
        }
      }
    }
  }

  absl::StatusOr<Snapshot> Finish() {
    const auto add = [this](const Event& event, Offset address) {
      snapshot_.events.push_back(event);
      snapshot_.addresses.push_back(address);
    };
    for (const auto& [address, alloc] : early_) add(alloc, address);
    for (const auto& [event, address] : history_) add(event, address);
    snapshot_.live_at_begin = early_.size();
    if (const absl::Status s = NumberBlocks(snapshot_.events); !s.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", name_, std::string_view(s.message().data(), s.message().size())));
    }
    snapshot_.stacks = frames_.Take();
    if (converted_) {
      ForgetPlaces(converted_->Find(kWholeKey));
    } else {
      MeasureReserved();
    }
    AddNotes();
    return std::move(snapshot_);
  }

  void MeasureReserved() {
    snapshot_.reserved_at_end = reserved_;
    snapshot_.reserved_at_begin = std::max(reserved_ - Bytes(change_), Bytes(0));
    snapshot_.reserved_peak = snapshot_.reserved_at_begin + Bytes(most_change_);
    if (has_history_) {
      const Bytes recorded = LivePeakOf(snapshot_.events).bytes;
      snapshot_.unseen = std::max(snapshot_.reserved_at_begin - recorded, Bytes(0));
    }
  }

  void ForgetPlaces(const std::optional<PickleValue>& whole) {
    snapshot_.converted = true;
    snapshot_.segments.clear();
    snapshot_.addresses.clear();
    if (whole && whole->integer().value_or(0) != 0) snapshot_.unseen = Bytes(0);
  }

  void AddNotes() {
    if (snapshot_.converted) {
      if (const std::string_view why = snapshot_.WhyNotWhole(); !why.empty())
        snapshot_.notes.push_back(fmt::format("{}: the job's live peak may be higher", why));
    } else if (!has_history_) {
      snapshot_.notes.emplace_back(
          "no history in it: _record_memory_history was not on; only what is live is read");
    } else if (snapshot_.unseen > Bytes(0)) {
      snapshot_.notes.push_back(
          fmt::format("the job's live peak may have been before the history begins, up to {} B higher: so "
                      "much more was reserved by then",
                      snapshot_.unseen->count()));
    }
    if (snapshot_.live_at_begin > 0) {
      snapshot_.notes.push_back(
          fmt::format("{} blocks were live before the history begins; they are taken as allocated first, in "
                      "order of address",
                      snapshot_.live_at_begin));
    }
    if (requests_free_) {
      snapshot_.notes.emplace_back(
          "no free_completed in its history: blocks are taken as freed when that was asked for, which is "
          "too early for those that another stream still used");
    }
    if (lost_ > 0) {
      snapshot_.notes.push_back(
          fmt::format("{} entries do not fit what was before them and were set right", lost_));
    }
    if (unknown_ > 0)
      snapshot_.notes.push_back(fmt::format("{} entries of unknown kinds were ignored", unknown_));
    if (snapshot_.ooms > 0)
      snapshot_.notes.push_back(fmt::format("out of memory {} times in it", snapshot_.ooms));
  }

  const PickleValue root_;
  const std::optional<PickleValue> converted_;  // what the snapshot says of itself where it was converted
  const std::string_view name_;
  size_t entries_left_;
  std::string where_;  // the entry that is read, for messages
  Snapshot snapshot_;
  uint64_t blocks_ = 0;
  std::vector<std::pair<Event, Offset>> history_;
  std::map<Offset, Event> early_;               // the allocations of blocks that were there before it began
  absl::flat_hash_set<int64_t> early_pending_;  // addresses of early blocks whose free is not completed
  // Every one that the history names, and the block that is live there.
  absl::flat_hash_map<int64_t, std::optional<BlockId>> addresses_;
  std::optional<int64_t> first_time_;
  bool has_history_ = false;
  bool requests_free_ = false;  // a free is told when it was asked for, and no more
  SnapshotFrames frames_;
  Bytes reserved_;
  int64_t change_ = 0, most_change_ = 0;  // of the reserved bytes since the history began
  int64_t lost_ = 0, unknown_ = 0;
};

}  // namespace

std::string_view Snapshot::WhyNotWhole() const {
  if (!unseen)
    return converted ? "it was converted from what is not all of the job" : "there is no history in it";
  return *unseen > Bytes(0) ? "its history begins when more was reserved than is live at its peak" : "";
}

absl::StatusOr<Snapshot> ParseSnapshot(std::string_view contents, std::string_view name) {
  const absl::StatusOr<Pickle> pickle = ParsePickle(contents, name);
  if (!pickle.ok()) return pickle.status();
  return SnapshotReader(*pickle, name, contents.size()).Read();
}

}  // namespace reprise::profiler
