#include "profiler/trace_format.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/json_writer.h"
#include "profiler/varint.h"

// The file. Fixed numbers are little-endian.
//
//   +-----------+------------+----------------+--------+--   --+--------+--------+--------+
//   | magic, 12 | version, 4 | metadata block | events |  ...  | stacks | events | footer |
//   +-----------+------------+----------------+--------+--   --+--------+--------+--------+
//
// Blocks of stacks are there where stacks were recorded, each before the first events that name what is in
// it; blocks of activities where those were, in between. A reader skips a block of a type that it does not
// know, and says so.
//
// A block. The marker tells a block from garbage and the complement tells a damaged length from a file that
// ends early; everything else is under zstd's content checksum (the low 32 bits of XXH64).
//
//   +--------------+-----------+------------+--------------------------------------+
//   | marker, 4    | length, 4 | ~length, 4 | zstd frame of `length` bytes         |
//   | "RBLK"       |           |            | with content size and checksum       |
//   +--------------+-----------+------------+--------------------------------------+
//
// The frame unpacked ("raw", at most 1 MiB) begins with the type, one byte:
//
//   metadata   JSON, TraceMetadata
//   footer     JSON, TraceFooter
//   events     head | codes | distances | arguments | times [ | stacks ]
//   stacks     head | strings | frames | stacks | modules
//   activities head | kinds | begins | durations | tracks | names | bytes
//
// Head: first_event, dropped, events, first_id as varints; then each column as its length and its bytes. A
// block is decoded by itself: what an encoder keeps about the past (classes, context, time) starts anew in
// each. That bounds the memory of the recorder whatever sizes the job asks for, and costs a class's few bytes
// once a block.
//
// Columns keep like beside like, which zstd rewards: an iteration repeats in codes and distances to the byte,
// while times are noise and would break every match they were mixed into.
//
//   codes, varints           takes from                       means
//     0 free                 distances: 1                     the block allocated so many allocations ago
//     1 mark                 arguments: number                a mark
//     2 new class            arguments: bytes, alignment      an allocation, and the next class is defined so
//     3 context              arguments: stream, thread        no event: of all that follow
//     4 jump                 arguments: zigzag                no event: the next id is so far from the
//     expected one 5+k alloc                                               an allocation of class k
//
// Ids are implicit: the next allocation is expected to have the id after the last one's. `times` has one
// zigzag varint an event, the microseconds since the event before it (since 0 for the first), or is empty
// when no event of the block has a time. `stacks` has one varint an allocation, its StackId, and is left out
// where no allocation of the block has one: an iteration repeats in it to the byte, so it packs to little.
//
// A block of stacks adds to the tables of the trace, which are numbered from 1 through all blocks. Its head
// says as varints how many frames, stacks and modules there are before it, and how many are in it:
// first_frame, frames, first_stack, stacks, first_module, modules. Then each column as its length and bytes:
//
//   strings    each as its length and its bytes; numbered from 1 in this block, 0 is the empty one
//   frames     kind, function (a string), file (a string), zigzag line, module (a string), address
//   stacks     the number of frames, then of each, innermost first, zigzag the distance to the one before it
//   modules    path (a string), build id (a string)
//
// A block of activities: its head says as varints first_activity, dropped, activities. Each column as its
// length and its bytes, a varint an activity:
//
//   kinds      0 kernel, 1 copy, 2 set, 3 a range that the job marked
//   begins     zigzag nanoseconds from the end of the activity before (from 0 for the first): on a busy
//              stream that is next to nothing
//   durations  nanoseconds
//   tracks     the stream or the thread
//   names      a frame of the trace's tables, of kind 2
//   bytes      of copies and sets alone

namespace reprise::profiler {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMarker = 0x4b4c4252;  // "RBLK"
constexpr size_t kMostMetadataText = size_t{1} << 16;
// What metadata may say; more was written by nobody who recorded.
constexpr int64_t kMostSize = int64_t{1} << 62;
constexpr int64_t kMostDevices = 1 << 20;
constexpr int64_t kMostRanks = 1 << 24;
constexpr int64_t kMostTimeUs = std::numeric_limits<int64_t>::max() / 1000;

enum Code : uint64_t { kCodeFree, kCodeMark, kCodeNewClass, kCodeContext, kCodeJump, kCodeFirstClass };

std::string WithType(BlockType type, const JsonWriter& json) { return static_cast<char>(type) + json.text(); }

// The JSON object behind the type byte.
absl::StatusOr<Json> ParseObject(std::string_view raw) {
  if (!raw.empty()) raw.remove_prefix(1);
  Json json = Json::parse(raw, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("not a JSON object");
  return json;
}

std::string StringAt(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// A whole number from 0 to `most`; 0 for anything else, as where there is none.
int64_t NumberAt(const Json& json, const char* key, int64_t most = std::numeric_limits<int64_t>::max()) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_integer()) return 0;
  const auto number = it->get<int64_t>();  // below 0 also if it is above all int64_t
  return number >= 0 && number <= most ? number : 0;
}

struct NamedEnd {
  TraceEnd end;
  std::string_view name;
};
constexpr NamedEnd kEnds[] = {{TraceEnd::kClosed, "closed"},
                              {TraceEnd::kFirstPlan, "first plan"},
                              {TraceEnd::kSizeLimit, "size limit"},
                              {TraceEnd::kOverrun, "overrun"},
                              {TraceEnd::kUnknown, "unknown"}};

std::string_view NameOf(TraceEnd end) { return std::ranges::find(kEnds, end, &NamedEnd::end)->name; }

// A footer that says nothing is of before there was anything to say.
TraceEnd EndAt(const Json& json, const char* key) {
  if (!json.contains(key)) return TraceEnd::kClosed;
  const auto* const known = std::ranges::find(kEnds, StringAt(json, key), &NamedEnd::name);
  return known == std::end(kEnds) ? TraceEnd::kUnknown : known->end;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("malformed events: {}", what));
}

// Decodes the columns of one block. Every read is checked: a column that ends early fails, one that is left
// over fails too.
class EventsDecoder {
 public:
  absl::StatusOr<BlockHead> Decode(std::string_view raw, std::vector<Event>* append_to) {
    BlockHead head;
    raw.remove_prefix(1);
    if (!TakeVarint(&raw, &head.first_event) || !TakeVarint(&raw, &head.dropped) ||
        !TakeVarint(&raw, &head.events) || !TakeVarint(&raw, &next_id_)) {
      return Malformed("the head ends early");
    }
    for (std::string_view* column : {&codes_, &distances_, &arguments_, &times_}) {
      if (!TakeColumn(&raw, column)) return Malformed("a column ends early");
    }
    has_stacks_ = !raw.empty();
    if (has_stacks_ && !TakeColumn(&raw, &stacks_)) return Malformed("a column ends early");
    if (!raw.empty()) return Malformed("bytes after the last column");
    if (head.events > kMostBlockEvents || head.events > codes_.size()) return Malformed("too many events");
    timed_ = !times_.empty();
    for (uint64_t i = 0; i < head.events; ++i) {
      Event event;
      if (absl::Status status = Next(&event); !status.ok()) return status;
      append_to->push_back(event);
    }
    if (!codes_.empty() || !distances_.empty() || !arguments_.empty() || !times_.empty() ||
        !stacks_.empty()) {
      return Malformed("a column is longer than its events");
    }
    return head;
  }

 private:
  static bool TakeColumn(std::string_view* raw, std::string_view* column) {
    uint64_t length;
    if (!TakeVarint(raw, &length) || length > raw->size()) return false;
    *column = raw->substr(0, length);
    raw->remove_prefix(length);
    return true;
  }

  absl::Status Next(Event* event) {
    uint64_t code;
    while (true) {
      if (!TakeVarint(&codes_, &code)) return Malformed("the codes end early");
      if (code != kCodeContext && code != kCodeJump) break;
      if (absl::Status status = code == kCodeContext ? Context() : Jump(); !status.ok()) return status;
    }
    event->stream = stream_;
    event->thread = thread_;
    if (absl::Status status = Fill(code, event); !status.ok()) return status;
    return Time(event);
  }

  absl::Status Fill(uint64_t code, Event* event) {
    uint64_t number;
    if (code == kCodeFree) {
      if (!TakeVarint(&distances_, &number)) return Malformed("the distances end early");
      event->kind = EventKind::kFree;
      event->id = BlockId(next_id_ - number);
      return absl::OkStatus();
    }
    if (code == kCodeMark) {
      if (!TakeVarint(&arguments_, &number)) return Malformed("the arguments end early");
      event->kind = EventKind::kMark;
      event->id = BlockId(number);
      return absl::OkStatus();
    }
    if (code == kCodeNewClass) {
      if (absl::Status status = NewClass(); !status.ok()) return status;
      code = kCodeFirstClass + classes_.size() - 1;
    }
    if (code - kCodeFirstClass >= classes_.size()) return Malformed("an unknown class");
    event->kind = EventKind::kAlloc;
    event->id = BlockId(next_id_++);
    std::tie(event->bytes, event->alignment) = classes_[code - kCodeFirstClass];
    return has_stacks_ ? Stack(event) : absl::OkStatus();
  }

  // Whether the trace has such a stack is for its reader to say.
  absl::Status Stack(Event* event) {
    uint64_t number;
    if (!TakeVarint(&stacks_, &number)) return Malformed("the stacks end early");
    if (number > std::numeric_limits<uint32_t>::max()) return Malformed("a stack's number above 32 bits");
    event->stack = StackId(static_cast<uint32_t>(number));
    return absl::OkStatus();
  }

  absl::Status NewClass() {
    uint64_t bytes, alignment;
    if (!TakeVarint(&arguments_, &bytes) || !TakeVarint(&arguments_, &alignment)) {
      return Malformed("the arguments end early");
    }
    classes_.emplace_back(Bytes(static_cast<int64_t>(bytes)), Bytes(static_cast<int64_t>(alignment)));
    return absl::OkStatus();
  }

  absl::Status Context() {
    uint64_t stream, thread;
    if (!TakeVarint(&arguments_, &stream) || !TakeVarint(&arguments_, &thread)) {
      return Malformed("the arguments end early");
    }
    if (thread > std::numeric_limits<uint32_t>::max()) return Malformed("a thread number above 32 bits");
    stream_ = Stream(stream);
    thread_ = static_cast<uint32_t>(thread);
    return absl::OkStatus();
  }

  absl::Status Jump() {
    uint64_t distance;
    if (!TakeVarint(&arguments_, &distance)) return Malformed("the arguments end early");
    next_id_ += static_cast<uint64_t>(UnZigZag(distance));
    return absl::OkStatus();
  }

  absl::Status Time(Event* event) {
    if (!timed_) return absl::OkStatus();
    uint64_t delta;
    if (!TakeVarint(&times_, &delta)) return Malformed("the times end early");
    if (__builtin_add_overflow(time_us_, UnZigZag(delta), &time_us_) || time_us_ > kMostTimeUs ||
        time_us_ < -kMostTimeUs) {
      return Malformed("a time out of range");
    }
    event->time_ns = time_us_ * 1000;
    return absl::OkStatus();
  }

  std::string_view codes_, distances_, arguments_, times_, stacks_;
  std::vector<std::pair<Bytes, Bytes>> classes_;  // size, alignment
  uint64_t next_id_ = 0;
  Stream stream_{};
  uint32_t thread_ = 0;
  int64_t time_us_ = 0;
  bool timed_ = false, has_stacks_ = false;
};

}  // namespace

BlockEncoder::BlockEncoder() {
  raw_.reserve(kMostRawBytes);
  for (std::string* column : {&codes_, &distances_, &arguments_, &times_}) column->reserve(kMostRawBytes / 4);
  // `stacks_` grows when there are any.
}

// An event takes at most 75 bytes over all columns, so the other half is room enough for one more and the
// head.
bool BlockEncoder::full() const {
  return events_ >= kMostBlockEvents ||
         codes_.size() + distances_.size() + arguments_.size() + times_.size() + stacks_.size() >=
             kMostRawBytes / 2;
}

void BlockEncoder::Add(const Event& event) {
  ++events_;
  if (event.stream != stream_ || event.thread != thread_) AddContext(event);
  AddTime(event);
  switch (event.kind) {
    case EventKind::kAlloc:
      AddAlloc(event);
      break;
    case EventKind::kFree:
      PutVarint(kCodeFree, &codes_);
      PutVarint(next_id_ - static_cast<uint64_t>(event.id), &distances_);
      break;
    case EventKind::kMark:
      PutVarint(kCodeMark, &codes_);
      PutVarint(static_cast<uint64_t>(event.id), &arguments_);
      break;
  }
}

void BlockEncoder::AddContext(const Event& event) {
  stream_ = event.stream;
  thread_ = event.thread;
  PutVarint(kCodeContext, &codes_);
  PutVarint(static_cast<uint64_t>(stream_), &arguments_);
  PutVarint(thread_, &arguments_);
}

void BlockEncoder::AddTime(const Event& event) {
  const int64_t now_us = event.time_ns / 1000;
  timed_ = timed_ || now_us != 0;
  PutVarint(ZigZag(now_us - time_us_), &times_);
  time_us_ = now_us;
}

void BlockEncoder::AddAlloc(const Event& event) {
  const uint64_t id = static_cast<uint64_t>(event.id);
  if (id != next_id_) {
    PutVarint(kCodeJump, &codes_);
    PutVarint(ZigZag(static_cast<int64_t>(id - next_id_)), &arguments_);
  }
  next_id_ = id + 1;
  has_stacks_ = has_stacks_ || event.stack != StackId(0);
  PutVarint(static_cast<uint64_t>(event.stack), &stacks_);
  const AllocClass key{event.bytes.count(), event.alignment.count()};
  const auto [it, added] = classes_.try_emplace(key, classes_.size());
  if (added) {
    PutVarint(kCodeNewClass, &codes_);
    PutVarint(static_cast<uint64_t>(key.bytes), &arguments_);
    PutVarint(static_cast<uint64_t>(key.alignment), &arguments_);
  } else {
    PutVarint(kCodeFirstClass + it->second, &codes_);
  }
}

std::string_view BlockEncoder::Take(uint64_t dropped) {
  if (!timed_) times_.clear();
  raw_.assign(1, static_cast<char>(BlockType::kEvents));
  for (uint64_t number : {first_event_, dropped, events_, first_id_}) PutVarint(number, &raw_);
  for (std::string* column : {&codes_, &distances_, &arguments_, &times_}) {
    PutVarint(column->size(), &raw_);
    raw_ += *column;
    column->clear();
  }
  if (has_stacks_) {
    PutVarint(stacks_.size(), &raw_);
    raw_ += stacks_;
  }
  stacks_.clear();
  first_event_ += events_;
  events_ = 0;
  first_id_ = next_id_;
  classes_.clear();
  stream_ = Stream{};
  thread_ = 0;
  time_us_ = 0;
  timed_ = false;
  has_stacks_ = false;
  return raw_;
}

std::string EncodeMetadata(const TraceMetadata& metadata) {
  JsonWriter json;
  json.BeginObject();
  json.Field("reprise_version", metadata.reprise_version);
  json.Key("command");
  json.BeginArray();
  size_t text = 0;
  for (const std::string& argument : metadata.command) {
    text += JsonWriter::Text(argument).size() + 1;  // as it is written: quotes, escapes and a comma with it
    if (text > kMostMetadataText) {                 // a block is bounded and a command line is not
      json.Value("...");
      break;
    }
    json.Value(argument);
  }
  json.EndArray();
  json.Field("host", metadata.host);
  json.Field("run", metadata.run);
  json.Field("job", metadata.job);
  json.Field("step", metadata.step);
  json.Field("started", metadata.started);
  json.Field("pid", metadata.pid);
  json.Field("threshold", metadata.threshold.count());
  json.Field("granule", metadata.granule.count());
  json.Field("device", metadata.device);
  json.Field("rank", metadata.rank);
  json.Field("world_size", metadata.world_size);
  json.EndObject();
  return WithType(BlockType::kMetadata, json);
}

std::string EncodeFooter(const TraceFooter& footer) {
  JsonWriter json;
  json.BeginObject();
  json.Field("events", footer.events);
  json.Field("dropped", footer.dropped);
  json.Field("end", NameOf(footer.end));
  json.Field("activities", footer.activities);
  json.Field("activities_dropped", footer.activities_dropped);
  json.Field("activities_end", NameOf(footer.activities_end));
  json.Field("passed_bytes", footer.passed.count());
  json.EndObject();
  return WithType(BlockType::kFooter, json);
}

absl::StatusOr<BlockType> TypeOfBlock(std::string_view raw) {
  if (raw.empty()) return absl::InvalidArgumentError("an empty block");
  const uint8_t type = static_cast<uint8_t>(raw.front());
  if (type < static_cast<uint8_t>(BlockType::kMetadata))
    return absl::InvalidArgumentError("a block of type 0");
  return static_cast<BlockType>(type);
}

absl::StatusOr<TraceMetadata> DecodeMetadata(std::string_view raw) {
  absl::StatusOr<Json> json = ParseObject(raw);
  if (!json.ok()) return absl::InvalidArgumentError("malformed metadata: not a JSON object");
  TraceMetadata metadata;
  metadata.reprise_version = StringAt(*json, "reprise_version");
  metadata.host = StringAt(*json, "host");
  metadata.run = StringAt(*json, "run");
  metadata.job = StringAt(*json, "job");
  metadata.step = StringAt(*json, "step");
  metadata.started = StringAt(*json, "started");
  metadata.pid = NumberAt(*json, "pid", std::numeric_limits<int32_t>::max());
  metadata.threshold = Bytes(NumberAt(*json, "threshold", kMostSize));
  metadata.granule = Bytes(NumberAt(*json, "granule", kMostSize));
  metadata.device = NumberAt(*json, "device", kMostDevices);
  metadata.world_size = NumberAt(*json, "world_size", kMostRanks);
  metadata.rank = NumberAt(*json, "rank", metadata.world_size > 0 ? metadata.world_size - 1 : kMostRanks);
  if (const auto it = json->find("command"); it != json->end() && it->is_array()) {
    for (const Json& argument : *it) {
      if (argument.is_string()) metadata.command.push_back(argument.get<std::string>());
    }
  }
  return metadata;
}

absl::StatusOr<TraceFooter> DecodeFooter(std::string_view raw) {
  absl::StatusOr<Json> json = ParseObject(raw);
  if (!json.ok()) return absl::InvalidArgumentError("malformed footer: not a JSON object");
  TraceFooter footer;
  footer.events = static_cast<uint64_t>(NumberAt(*json, "events"));
  footer.dropped = static_cast<uint64_t>(NumberAt(*json, "dropped"));
  footer.end = EndAt(*json, "end");
  footer.activities = static_cast<uint64_t>(NumberAt(*json, "activities"));
  footer.activities_dropped = static_cast<uint64_t>(NumberAt(*json, "activities_dropped"));
  footer.activities_end = EndAt(*json, "activities_end");
  footer.passed = Bytes(NumberAt(*json, "passed_bytes", kMostSize));
  return footer;
}

absl::StatusOr<BlockHead> DecodeEvents(std::string_view raw, std::vector<Event>* append_to) {
  if (raw.empty()) return Malformed("no type");
  return EventsDecoder().Decode(raw, append_to);
}

void PutFixed32(uint32_t value, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

uint32_t GetFixed32(const char* in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(in[i])} << (8 * i);
  return value;
}

void PutFraming(uint32_t stored_bytes, char* out) {
  PutFixed32(kMarker, out);
  PutFixed32(stored_bytes, out + 4);
  PutFixed32(~stored_bytes, out + 8);
}

absl::StatusOr<uint32_t> ParseFraming(const char* in) {
  if (GetFixed32(in) != kMarker) return absl::InvalidArgumentError("no block begins here");
  const uint32_t stored_bytes = GetFixed32(in + 4);
  if (GetFixed32(in + 8) != ~stored_bytes) return absl::InvalidArgumentError("a block's length is damaged");
  if (stored_bytes > MostStoredBytes()) return absl::InvalidArgumentError("a block longer than any can be");
  return stored_bytes;
}

size_t MostStoredBytes() { return ZSTD_compressBound(kMostRawBytes); }

}  // namespace reprise::profiler
