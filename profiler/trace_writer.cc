#include "profiler/trace_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.h"

namespace reprise::profiler {
namespace {

constexpr int kCompressionLevel = 3;
constexpr int64_t kFooterReserve = 512;  // bytes kept free below a size limit for the footer

// A trace stays open while a job runs, whose own files are to have the numbers that they have without us: a new one
// gets the lowest, and programs count on that.
int OutOfTheWay(int fd) {
  rlimit limit{};
  if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return AboveStandard(fd);
  const rlim_t from = std::max<rlim_t>(std::min<rlim_t>(limit.rlim_cur, 1024) / 2, STDERR_FILENO + 1);
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(from));
  if (high < 0) return AboveStandard(fd);
  close(fd);
  return high;
}

}  // namespace

TraceWriter::TraceWriter(std::string path, const TraceWriterOptions& options)
    : path_(std::move(path)),
      most_bytes_(options.most_bytes),
      most_activity_bytes_(options.most_activity_bytes),
      stacks_(options.stacks) {}

TraceWriter::~TraceWriter() {
  CloseFile();
  ZSTD_freeCCtx(compressor_);
}

absl::StatusOr<std::unique_ptr<TraceWriter>> TraceWriter::Open(const std::string& path,
                                                               const TraceMetadata& metadata,
                                                               const TraceWriterOptions& options) {
  std::unique_ptr<TraceWriter> writer(new TraceWriter(path, options));
  writer->compressor_ = ZSTD_createCCtx();
  if (writer->compressor_ == nullptr) return absl::ResourceExhaustedError(path + ": no memory for zstd");
  ZSTD_CCtx_setParameter(writer->compressor_, ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(writer->compressor_, ZSTD_c_checksumFlag, 1);
  writer->stored_.resize(kFramingBytes + MostStoredBytes());

  writer->fd_ = OutOfTheWay(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (writer->fd_ < 0) return absl::ErrnoToStatus(errno, path + ": cannot be created");
  struct stat file;
  if (fstat(writer->fd_, &file) != 0) return absl::ErrnoToStatus(errno, path + ": cannot be examined");
  writer->device_ = file.st_dev;
  writer->inode_ = file.st_ino;

  std::string preamble(kTraceMagic);
  preamble.resize(kPreambleBytes);
  PutFixed32(kTraceVersion, preamble.data() + kTraceMagic.size());
  absl::Status status = writer->WriteAll(preamble);
  if (status.ok()) status = writer->WriteBlock(EncodeMetadata(metadata), kFooterReserve);
  if (!status.ok()) return status;
  return writer;
}

absl::Status TraceWriter::Append(const Event& event) {
  if (!status_.ok() || closed_) {
    ++events_lost_;
    return status_.ok() ? absl::FailedPreconditionError(path_ + ": the trace is closed") : status_;
  }
  encoder_.Add(event);
  return encoder_.full() ? FlushEvents() : absl::OkStatus();
}

absl::Status TraceWriter::Append(const Activity& activity) {
  if (!status_.ok() || closed_ || activities_full_) {
    ++activities_lost_;
    return status_;
  }
  activity_encoder_.Add(activity);
  return activity_encoder_.full() ? FlushActivities() : absl::OkStatus();
}

absl::Status TraceWriter::Flush() {
  if (absl::Status status = FlushActivities(); !status.ok()) return status;
  return FlushEvents();
}

absl::Status TraceWriter::FlushActivities() {
  const uint64_t activities = activity_encoder_.activities();
  if (!status_.ok() || closed_ || activities == 0) return status_;
  absl::Status status = WriteStacks();
  if (status.ok()) status = WriteActivities(activity_encoder_.Take(activities_dropped_));
  if (!status.ok()) return GiveUp(status, encoder_.events(), activities);
  (activities_full_ ? activities_lost_ : activities_written_) += activities;
  return absl::OkStatus();
}

// Their limit is no error.
absl::Status TraceWriter::WriteActivities(std::string_view raw) {
  const absl::StatusOr<std::string_view> block = Packed(raw);
  if (!block.ok()) return block.status();
  const auto bytes = static_cast<int64_t>(block->size());
  activities_full_ = most_activity_bytes_ > 0 && activity_bytes_ + bytes > most_activity_bytes_;
  if (activities_full_) return absl::OkStatus();
  activity_bytes_ += bytes;
  return WriteAll(*block);
}

// Ends the file; what was pending is lost.
absl::Status TraceWriter::GiveUp(const absl::Status& status, uint64_t events, uint64_t activities) {
  events_lost_ += events;
  activities_lost_ += activities;
  if (fd_ >= 0) WriteFooter(TraceEnd::kSizeLimit).IgnoreError();
  CloseFile();
  return status;
}

absl::Status TraceWriter::FlushEvents() {
  if (!status_.ok() || closed_ || encoder_.events() == 0) return status_;
  const uint64_t events = encoder_.events();
  absl::Status status = WriteStacks();
  if (status.ok()) status = WriteBlock(encoder_.Take(dropped_), kFooterReserve);
  if (!status.ok()) return GiveUp(status, events, activity_encoder_.activities());
  events_written_ += events;
  return absl::OkStatus();
}

absl::Status TraceWriter::Close(TraceEnd end) {
  if (closed_) return status_;
  absl::Status status = Flush();
  closed_ = true;
  if (!status.ok()) return status;
  if (status = WriteFooter(end); !status.ok()) return Fail(status);
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) return Fail(absl::ErrnoToStatus(errno, path_ + ": cannot be closed"));
  return absl::OkStatus();
}

// All that is new, so also what the events about to be written name.
absl::Status TraceWriter::WriteStacks() {
  while (stacks_ != nullptr) {
    const std::string raw =
        stacks_->Read([&](const StackTable& table) { return EncodeStacks(table, &stacks_written_); });
    if (raw.empty()) break;
    if (absl::Status status = WriteBlock(raw, kFooterReserve); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TraceWriter::WriteFooter(TraceEnd end) {
  return WriteBlock(
      EncodeFooter({.events = events_written_,
                    .dropped = dropped_,
                    .end = end,
                    .activities = activities_written_,
                    .activities_dropped = activities_dropped_ + activities_lost_,
                    .activities_end = activities_full_ ? TraceEnd::kSizeLimit : TraceEnd::kClosed,
                    .passed = passed_}),
      0);
}

// `raw` as a block. Valid until the next one. An error is final.
absl::StatusOr<std::string_view> TraceWriter::Packed(std::string_view raw) {
  const size_t stored = ZSTD_compress2(compressor_, stored_.data() + kFramingBytes,
                                       stored_.size() - kFramingBytes, raw.data(), raw.size());
  if (ZSTD_isError(stored)) {
    CloseFile();
    return Fail(absl::InternalError(fmt::format("{}: zstd: {}", path_, ZSTD_getErrorName(stored))));
  }
  PutFraming(static_cast<uint32_t>(stored), stored_.data());
  return std::string_view(stored_.data(), kFramingBytes + stored);
}

// Writes `raw` as a block, unless fewer than `reserve` bytes would be left below the size limit. A write that
// fails closes the file; the size limit leaves it open for the footer. Both are final.
absl::Status TraceWriter::WriteBlock(std::string_view raw, int64_t reserve) {
  const absl::StatusOr<std::string_view> block = Packed(raw);
  if (!block.ok()) return block.status();
  const int64_t after = bytes_written_ - activity_bytes_ + static_cast<int64_t>(block->size());
  if (most_bytes_ > 0 && after + reserve > most_bytes_) {
    full_ = full_ || status_.ok();
    return Fail(absl::ResourceExhaustedError(
        fmt::format("{}: recording stopped at the size limit of {} bytes", path_, most_bytes_)));
  }
  return WriteAll(*block);
}

absl::Status TraceWriter::WriteAll(std::string_view bytes) {
  if (absl::Status status = StillOurFile(); !status.ok()) {
    fd_ = -1;  // whose it is now is not ours to close
    return Fail(status);
  }
  if (!reprise::WriteAll(fd_, bytes)) {
    const absl::Status status = absl::ErrnoToStatus(errno, path_ + ": cannot be written");
    // Readers ignore a torn block; the space may be wanted by the job. Best effort: a pipe cannot be cut.
    if (ftruncate(fd_, bytes_written_) != 0) errno = 0;
    CloseFile();
    return Fail(status);
  }
  bytes_written_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

// A job may close descriptors it did not open and get our number for a file of its own.
absl::Status TraceWriter::StillOurFile() const {
  struct stat file;
  if (fstat(fd_, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_) return absl::OkStatus();
  return absl::AbortedError(path_ + ": the program closed the trace's file descriptor");
}

absl::Status TraceWriter::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

void TraceWriter::CloseFile() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace reprise::profiler
