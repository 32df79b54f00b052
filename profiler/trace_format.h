// How events become the bytes of a `.reprise` trace and come back. Memory only: trace_writer.h and
// trace_reader.h do the files. The layout is drawn in trace_format.cc.
//
// Glossary
//   block    what is written at once: a marker, a length, and one zstd frame with zstd's own content checksum
//   stored   the bytes of a block's zstd frame, as they lie in the file
//   raw      the same bytes unpacked: a type, then what the type says
//   column   the part of an events block that holds one kind of number for all its events
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/hash_map.h"
#include "profiler/types.h"

namespace reprise::profiler {

inline constexpr uint32_t kTraceVersion = 1;
// Not text, and damaged by whatever converts line ends.
inline constexpr std::string_view kTraceMagic{"\x89REPRISE\r\n\x1a\n", 12};
inline constexpr size_t kPreambleBytes = kTraceMagic.size() + sizeof(uint32_t);
inline constexpr size_t kFramingBytes = 3 * sizeof(uint32_t);  // marker, length, the length's complement
inline constexpr size_t kMostRawBytes = size_t{1} << 20;       // of one block
inline constexpr size_t kMostBlockEvents = size_t{1} << 15;

// What a trace says about the job it was recorded in. A reader ignores keys it does not know.
struct TraceMetadata {
  std::string reprise_version{};
  std::vector<std::string> command{};
  std::string host{};
  std::string run{};  // what the process was part of, as the job's summaries name it; empty: nothing
  std::string job{};  // and its step, as a scheduler or launcher names them; empty: not known
  std::string step{};
  std::string started{};  // UTC, ISO 8601; where time_ns counts from
  int64_t pid = 0;
  Bytes threshold{};  // allocations below it were not recorded
  Bytes granule{};    // of the arena
  int64_t device = 0;
  int64_t rank = 0;
  int64_t world_size = 0;  // ranks of the job; 0: not known
  friend bool operator==(const TraceMetadata&, const TraceMetadata&) = default;
};

// Why a trace ends where it does.
enum class TraceEnd {
  kClosed,     // nothing more happened, or nobody wanted it
  kFirstPlan,  // while serving, a plan was adopted
  kSizeLimit,
  kOverrun,  // the writer fell behind
  kUnknown   // it says what this version does not know
};

struct TraceFooter {
  uint64_t events = 0;   // in all blocks
  uint64_t dropped = 0;  // events that happened before the end and are in no block
  TraceEnd end = TraceEnd::kClosed;
  uint64_t activities = 0;  // the same of activities, which have a limit of their own
  uint64_t activities_dropped = 0;
  TraceEnd activities_end = TraceEnd::kClosed;
  Bytes passed;  // in requests that the recorder was not told of: the real allocator has served them
  friend bool operator==(const TraceFooter&, const TraceFooter&) = default;
};

// trace_stacks.h: kStacks, trace_activities.h: kActivities. Those above are of a later version, and skipped.
enum class BlockType : uint8_t { kMetadata = 1, kEvents = 2, kFooter = 3, kStacks = 4, kActivities = 5 };

// What an events block says before its columns.
struct BlockHead {
  uint64_t first_event = 0;  // events in all blocks before it
  uint64_t dropped = 0;      // events dropped since the recording began
  uint64_t events = 0;
};

// Encodes the events of one block after another. The buffers keep their capacity, so that a long recording
// does not allocate. Not thread-safe.
class BlockEncoder {
 public:
  BlockEncoder();
  void Add(const Event& event);
  uint64_t events() const { return events_; }  // added since the last Take
  bool full() const;
  // The raw bytes of a block with the events added since the last Take, and starts the next one. Valid until
  // the next Take.
  std::string_view Take(uint64_t dropped);

 private:
  struct AllocClass {
    int64_t bytes;
    int64_t alignment;
    template <typename H>
    friend H AbslHashValue(H hash, const AllocClass& c) {
      return H::combine(std::move(hash), c.bytes, c.alignment);
    }
    friend bool operator==(const AllocClass&, const AllocClass&) = default;
  };
  void AddContext(const Event& event);
  void AddTime(const Event& event);
  void AddAlloc(const Event& event);

  std::string codes_, distances_, arguments_, times_, stacks_, raw_;
  HashMap<AllocClass, uint64_t> classes_;
  uint64_t events_ = 0, first_event_ = 0;
  uint64_t next_id_ = 0, first_id_ = 0;
  Stream stream_{};
  uint32_t thread_ = 0;
  int64_t time_us_ = 0;
  bool timed_ = false, has_stacks_ = false;
};

// The raw bytes of metadata and footer.
std::string EncodeMetadata(const TraceMetadata& metadata);
std::string EncodeFooter(const TraceFooter& footer);

// The inverse. `raw` is untrusted: InvalidArgument says what is wrong with it, and no length in it is
// believed before it has been checked.
// Perhaps of none of the types above.
absl::StatusOr<BlockType> TypeOfBlock(std::string_view raw);
absl::StatusOr<TraceMetadata> DecodeMetadata(std::string_view raw);
absl::StatusOr<TraceFooter> DecodeFooter(std::string_view raw);
absl::StatusOr<BlockHead> DecodeEvents(std::string_view raw, std::vector<Event>* append_to);

// Little-endian, as everything of fixed width in the file is.
void PutFixed32(uint32_t value, char* out);
uint32_t GetFixed32(const char* in);

// The three numbers before a block's frame.
void PutFraming(uint32_t stored_bytes, char* out);
// The stored bytes of the block that begins here. `in` holds kFramingBytes.
absl::StatusOr<uint32_t> ParseFraming(const char* in);
// The largest frame that a block can have.
size_t MostStoredBytes();

}  // namespace reprise::profiler
