#include "profiler/trace_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <fstream>
#include <ios>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "base/files.h"
#include "profiler/event_check.h"
#include "profiler/trace_activities.h"
#include "profiler/trace_stacks.h"
#include "profiler/varint.h"

namespace reprise::profiler {
namespace {

// Of a trace, its metadata at the most: a command line is cut where it is written.
constexpr size_t kMostHeadBytes = size_t{1} << 18;

class TraceParser {
 public:
  TraceParser(std::string_view contents, std::string_view name, uint64_t most_events)
      : contents_(contents), name_(name), most_events_(most_events), decompressor_(ZSTD_createDCtx()) {
    raw_.resize(kMostRawBytes);
  }

  absl::StatusOr<Trace> Parse() {
    if (absl::Status status = ParsePreamble(); !status.ok()) return status;
    Reserve();
    while (!trace_.read_in_part) {
      absl::StatusOr<std::string_view> raw = NextBlock();
      if (!raw.ok()) return raw.status();
      if (raw->empty()) break;
      if (absl::Status status = ParseBlock(*raw); !status.ok()) return status;
    }
    if (!has_metadata_) return Error(contents_.size(), "the file ends in its metadata; nothing was recorded");
    AddNotes();
    return std::move(trace_);
  }

 private:
  absl::Status Error(size_t byte, std::string_view what) const {
    return absl::DataLossError(fmt::format("{}: byte {}: {}", name_, byte, what));
  }

  absl::Status ParsePreamble() {
    const std::string_view magic = contents_.substr(0, kTraceMagic.size());
    if (magic != kTraceMagic.substr(0, magic.size())) {
      return Error(0, "not a Reprise trace; one begins with \\x89REPRISE");
    }
    if (contents_.size() < kPreambleBytes) {
      return Error(contents_.size(), "the file ends in its header; nothing was recorded");
    }
    const uint32_t version = GetFixed32(contents_.data() + kTraceMagic.size());
    if (version != kTraceVersion) {
      return Error(
          kTraceMagic.size(),
          fmt::format("trace format version {}, and this Reprise reads version {}; read it with the version "
                      "that recorded it",
                      version, kTraceVersion));
    }
    position_ = kPreambleBytes;
    return absl::OkStatus();
  }

  // Room for what the file has, by a first look at its blocks: a vector that grows holds its events twice
  // meanwhile, and they are most of what a command takes. What is wrong with the file, reading it will tell.
  void Reserve() {
    uint64_t events = 0, activities = 0;
    while (true) {
      const absl::StatusOr<std::string_view> raw = NextBlock();
      if (!raw.ok() || raw->empty()) break;
      const absl::StatusOr<BlockType> type = TypeOfBlock(*raw);
      if (!type.ok() || (*type != BlockType::kEvents && *type != BlockType::kActivities)) continue;
      // An event takes a byte at least, and so does an activity.
      const uint64_t count = std::min<uint64_t>({CountOf(*raw), raw->size(), kMostBlockEvents});
      if (count > most_events_ - events - activities) break;
      (*type == BlockType::kEvents ? events : activities) += count;
    }
    try {
      trace_.events.reserve(events);
      trace_.activities.reserve(activities);
    } catch (const std::bad_alloc&) {  // a hostile file claims what it does not have: what it has may fit
    }
    position_ = kPreambleBytes;
    torn_bytes_ = 0;
  }

  // How many events or activities such a block says that it has; 0 where its head ends early.
  static uint64_t CountOf(std::string_view raw) {
    raw.remove_prefix(1);
    uint64_t first, dropped, count;  // both heads begin so
    const bool whole = TakeVarint(&raw, &first) && TakeVarint(&raw, &dropped) && TakeVarint(&raw, &count);
    return whole ? count : 0;
  }

  // The next block unpacked, valid until the next call; empty at the end of the file or of its complete
  // blocks.
  absl::StatusOr<std::string_view> NextBlock() {
    block_begin_ = position_;
    const std::string_view rest = contents_.substr(position_);
    if (rest.size() < kFramingBytes) return EndsHere(rest);
    const absl::StatusOr<uint32_t> stored = ParseFraming(rest.data());
    if (!stored.ok()) return Error(position_, std::string(stored.status().message()));
    if (*stored > rest.size() - kFramingBytes) return EndsHere(rest);
    position_ += kFramingBytes + *stored;
    return Unpack(rest.substr(kFramingBytes, *stored));
  }

  std::string_view EndsHere(std::string_view rest) {
    torn_bytes_ = rest.size();
    return {};
  }

  absl::StatusOr<std::string_view> Unpack(std::string_view frame) {
    const unsigned long long claimed = ZSTD_getFrameContentSize(frame.data(), frame.size());
    const bool known = claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != ZSTD_CONTENTSIZE_ERROR;
    if (!known || claimed == 0 || claimed > kMostRawBytes) {
      return Error(block_begin_, "a damaged block: no size, or one that no block has");
    }
    if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
      return Error(block_begin_, "a damaged block: not one zstd frame");
    }
    const size_t size =
        ZSTD_decompressDCtx(decompressor_.get(), raw_.data(), raw_.size(), frame.data(), frame.size());
    if (ZSTD_isError(size)) {
      return Error(block_begin_, fmt::format("a damaged block: {}", ZSTD_getErrorName(size)));
    }
    return std::string_view(raw_.data(), size);
  }

  absl::Status ParseBlock(std::string_view raw) {
    const absl::StatusOr<BlockType> type = TypeOfBlock(raw);
    if (!type.ok()) return Error(block_begin_, std::string(type.status().message()));
    if (trace_.closed) return Error(block_begin_, "a block after the footer");
    if (has_metadata_ != (*type != BlockType::kMetadata)) {
      return Error(block_begin_, "metadata must be the first block and no other");
    }
    trace_.read_in_part = !HasRoomFor(*type, raw);
    if (trace_.read_in_part) return absl::OkStatus();
    switch (*type) {
      case BlockType::kMetadata:
        return Metadata(raw);
      case BlockType::kEvents:
        return Events(raw);
      case BlockType::kFooter:
        return Footer(raw);
      case BlockType::kStacks:
        return Stacks(raw);
      case BlockType::kActivities:
        return Activities(raw);
    }
    ++skipped_;
    return absl::OkStatus();
  }

  absl::Status Metadata(std::string_view raw) {
    absl::StatusOr<TraceMetadata> metadata = DecodeMetadata(raw);
    if (!metadata.ok()) return Error(block_begin_, std::string(metadata.status().message()));
    trace_.metadata = *std::move(metadata);
    has_metadata_ = true;
    return absl::OkStatus();
  }

  absl::Status Events(std::string_view raw) {
    const size_t before = trace_.events.size();
    const absl::StatusOr<BlockHead> head = DecodeEvents(raw, &trace_.events);
    if (!head.ok()) return Error(block_begin_, std::string(head.status().message()));
    if (head->first_event != before) {
      return Error(block_begin_,
                   fmt::format("a block with events from {} on follows {} events; a block is missing "
                               "or doubled",
                               head->first_event, before));
    }
    trace_.dropped = head->dropped;
    for (size_t i = before; i < trace_.events.size(); ++i) {
      if (absl::Status status = checker_.Add(trace_.events[i]); !status.ok()) {
        return Error(block_begin_, fmt::format("event {}: {}", i, std::string(status.message())));
      }
      if (!trace_.stacks.has(trace_.events[i].stack)) {
        return Error(block_begin_,
                     fmt::format("event {}: it names stack {}, and there are {}", i,
                                 static_cast<uint32_t>(trace_.events[i].stack), trace_.stacks.stacks()));
      }
    }
    return absl::OkStatus();
  }

  // By what the block says of itself, so that nothing grows past the limit before it is met. A head that no
  // block has is for its decoder to refuse.
  bool HasRoomFor(BlockType type, std::string_view raw) const {
    if (type != BlockType::kEvents && type != BlockType::kActivities) return true;
    const uint64_t count = CountOf(raw);
    const uint64_t room = most_events_ - trace_.events.size() - trace_.activities.size();
    return count <= room || count > kMostBlockEvents;
  }

  absl::Status Activities(std::string_view raw) {
    const size_t before = trace_.activities.size();
    const absl::StatusOr<ActivitiesHead> head = DecodeActivities(raw, &trace_.activities);
    if (!head.ok()) return Error(block_begin_, std::string(head.status().message()));
    if (head->first_activity != before) {
      return Error(block_begin_,
                   fmt::format("a block with activities from {} on follows {}; a block is missing "
                               "or doubled",
                               head->first_activity, before));
    }
    trace_.activities_dropped = head->dropped;
    for (size_t i = before; i < trace_.activities.size(); ++i) {
      const FrameId name = trace_.activities[i].name;
      if (name == FrameId(0) || trace_.stacks.has(name)) continue;
      return Error(block_begin_, fmt::format("activity {}: it names frame {}, and there are {}", i,
                                             static_cast<uint32_t>(name), trace_.stacks.frames()));
    }
    return absl::OkStatus();
  }

  absl::Status Stacks(std::string_view raw) {
    const absl::Status status = DecodeStacks(raw, &trace_.stacks);
    return status.ok() ? status : Error(block_begin_, std::string(status.message()));
  }

  absl::Status Footer(std::string_view raw) {
    const absl::StatusOr<TraceFooter> footer = DecodeFooter(raw);
    if (!footer.ok()) return Error(block_begin_, std::string(footer.status().message()));
    if (footer->events != trace_.events.size()) {
      return Error(block_begin_,
                   fmt::format("the footer counts {} events, and there are {}; a block is missing",
                               footer->events, trace_.events.size()));
    }
    if (footer->activities != trace_.activities.size()) {
      return Error(block_begin_,
                   fmt::format("the footer counts {} activities, and there are {}; a block is missing",
                               footer->activities, trace_.activities.size()));
    }
    trace_.closed = true;
    trace_.end = footer->end;
    trace_.dropped = footer->dropped;
    trace_.activities_dropped = footer->activities_dropped;
    trace_.passed = footer->passed;
    activities_end_ = footer->activities_end;
    return absl::OkStatus();
  }

  void AddNotes() {
    if (torn_bytes_ > 0) {
      trace_.notes.push_back(fmt::format("{} bytes after the last complete block ignored", torn_bytes_));
    }
    if (trace_.read_in_part) {
      trace_.notes.push_back(fmt::format(
          "reading stopped after {} events and {} kernels, copies and markers: no more than {} are "
          "read of a trace, and later ones are left out",
          trace_.events.size(), trace_.activities.size(), most_events_));
    } else if (!trace_.closed) {
      trace_.notes.push_back(
          fmt::format("{}: the job was killed, still runs, or could not write on", trace_.WhyEnded()));
    } else if (trace_.end != TraceEnd::kClosed) {
      trace_.notes.push_back(
          fmt::format("{}: later events are not in the trace{}", trace_.WhyEnded(),
                      trace_.end == TraceEnd::kFirstPlan ? "; with --mode record it has all of them" : ""));
    }
    if (trace_.dropped > 0) trace_.notes.push_back(fmt::format("{} events were dropped", trace_.dropped));
    if (trace_.passed > Bytes(0)) {
      trace_.notes.push_back(fmt::format(
          "requests of {} bytes in all were left to the real allocator: they are not in the trace",
          trace_.passed.count()));
    }
    if (activities_end_ == TraceEnd::kSizeLimit) {
      trace_.notes.emplace_back(
          "the time line stopped at its size limit: later kernels and copies are not in it");
    }
    if (trace_.activities_dropped > 0) {
      trace_.notes.push_back(
          fmt::format("{} kernels, copies and markers were dropped", trace_.activities_dropped));
    }
    if (skipped_ > 0) {
      trace_.notes.push_back(
          fmt::format("{} blocks of a kind that this version does not know ignored", skipped_));
    }
  }

  const std::string_view contents_;
  const std::string_view name_;
  const uint64_t most_events_;
  struct FreeDecompressor {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> decompressor_;
  std::string raw_;
  size_t position_ = 0, block_begin_ = 0, torn_bytes_ = 0;
  bool has_metadata_ = false;
  TraceEnd activities_end_ = TraceEnd::kClosed;
  size_t skipped_ = 0;
  EventChecker checker_;
  Trace trace_;
};

}  // namespace

std::string_view Trace::WhyEnded() const {
  if (read_in_part) return "more is in it than is read of a trace";
  if (!closed) return "recording was not finished";
  switch (end) {
    case TraceEnd::kClosed:
      return "";
    case TraceEnd::kFirstPlan:
      return "recording ended when the first plan was adopted";
    case TraceEnd::kSizeLimit:
      return "recording stopped at its size limit";
    case TraceEnd::kOverrun:
      return "recording stopped because it could not be written fast enough";
    case TraceEnd::kUnknown:
      break;
  }
  return "recording stopped for a reason that this version does not know";
}

std::string_view Trace::WhyNotWhole() const {
  if (const std::string_view why = WhyEnded(); !why.empty()) return why;
  if (dropped > 0) return "events were dropped";
  return passed > Bytes(0) ? "some requests were left to the real allocator" : "";
}

absl::StatusOr<Trace> ParseTrace(std::string_view contents, std::string_view name, uint64_t most_events) {
  return TraceParser(contents, name, most_events).Parse();
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return contents.status();
  return ParseTrace(*contents, path);
}

absl::StatusOr<TraceMetadata> ReadTraceMetadata(const std::string& path) {
  std::string head(kMostHeadBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (file.bad() || !file.is_open()) return absl::UnavailableError(fmt::format("{}: cannot be read", path));
  head.resize(static_cast<size_t>(file.gcount()));
  absl::StatusOr<Trace> trace = ParseTrace(head, path, /*most_events=*/0);
  if (!trace.ok()) return trace.status();
  return std::move(trace->metadata);
}

}  // namespace reprise::profiler
