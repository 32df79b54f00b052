// Writes a `.reprise` trace: events in, complete blocks out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profiler/shared_stacks.h"
#include "profiler/trace_activities.h"
#include "profiler/trace_format.h"
#include "profiler/trace_stacks.h"

struct ZSTD_CCtx_s;

namespace reprise::profiler {

struct TraceWriterOptions {
  int64_t most_bytes = 0;           // the file's size limit, blocks of activities not counted; 0: none
  int64_t most_activity_bytes = 0;  // the most that those may take; 0: no limit
  // What the events' stacks and the activities' names are; outlives the writer. Null: they have none. What is
  // named is there before what names it is appended.
  SharedStacks* stacks = nullptr;
};

// One trace file being written. A block is written with one system call and counts only when all of it was
// taken, so that whatever happens the file is a prefix of the recording, followed at worst by a torn block
// that a reader ignores. The first error is final: it is returned by every later call, and the events given
// after it are counted as lost. SIGXFSZ must be blocked or ignored by whoever runs under RLIMIT_FSIZE. Not
// thread-safe.
class TraceWriter {
 public:
  // Creates or overwrites `path` and writes the metadata. Errors: what open and write say.
  static absl::StatusOr<std::unique_ptr<TraceWriter>> Open(const std::string& path,
                                                           const TraceMetadata& metadata,
                                                           const TraceWriterOptions& options = {});
  ~TraceWriter();  // does not Close: what was not flushed is lost, as it would be if the process were killed
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Writes a block when enough events have come together.
  absl::Status Append(const Event& event);
  // The same. At their own limit activities end, and nothing else does: they are counted as lost from then
  // on.
  absl::Status Append(const Activity& activity);
  // Writes what is pending as a block: it will be read even if the process is killed after this.
  absl::Status Flush();
  // Flushes, writes the totals and why they are all, and closes the file. Idempotent.
  absl::Status Close(TraceEnd end = TraceEnd::kClosed);

  // Events lost before they reached the writer, since the recording began; told to the reader with the next
  // block.
  void SetDropped(uint64_t dropped) { dropped_ = dropped; }
  void SetActivitiesDropped(uint64_t dropped) { activities_dropped_ = dropped; }
  // For the footer.
  void SetPassed(Bytes passed) { passed_ = passed; }

  const absl::Status& status() const { return status_; }
  bool full() const { return full_; }  // stopped at the size limit, which a full disk is not
  uint64_t pending() const { return encoder_.events() + activity_encoder_.activities(); }
  uint64_t events_written() const { return events_written_; }
  uint64_t events_lost() const {
    return events_lost_;
  }  // given to Append, and not in the file after an error
  uint64_t activities_written() const { return activities_written_; }
  uint64_t activities_lost() const { return activities_lost_; }
  bool activities_full() const { return activities_full_; }  // their limit is reached
  int64_t bytes_written() const { return bytes_written_; }

 private:
  TraceWriter(std::string path, const TraceWriterOptions& options);
  absl::Status WriteStacks();
  absl::Status FlushEvents();
  absl::Status FlushActivities();
  absl::Status WriteActivities(std::string_view raw);
  absl::Status GiveUp(const absl::Status& status, uint64_t events, uint64_t activities);
  absl::StatusOr<std::string_view> Packed(std::string_view raw);
  absl::Status WriteBlock(std::string_view raw, int64_t reserve);
  absl::Status WriteAll(std::string_view bytes);
  absl::Status StillOurFile() const;
  absl::Status WriteFooter(TraceEnd end);
  absl::Status Fail(absl::Status status);
  void CloseFile();

  const std::string path_;
  const int64_t most_bytes_, most_activity_bytes_;
  SharedStacks* const stacks_;
  StacksWritten stacks_written_;
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  ZSTD_CCtx_s* compressor_ = nullptr;
  std::string stored_;
  BlockEncoder encoder_;
  ActivityEncoder activity_encoder_;
  absl::Status status_;
  bool closed_ = false;
  uint64_t dropped_ = 0, events_written_ = 0, events_lost_ = 0;
  uint64_t activities_dropped_ = 0, activities_written_ = 0, activities_lost_ = 0;
  bool full_ = false, activities_full_ = false;
  Bytes passed_;
  int64_t bytes_written_ = 0, activity_bytes_ = 0;
};

}  // namespace reprise::profiler
