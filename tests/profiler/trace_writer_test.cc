// A writer meets full disks, limits and jobs that close its file. Whatever happens, the file stays a prefix
// of what was recorded, the error is told, and what is lost is counted.
#include "profiler/trace_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "profiler/trace_reader.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;

class TraceWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceWriter> Open(const TraceWriterOptions& options = {}) {
    auto writer = TraceWriter::Open(path_, {.host = "here"}, options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  Trace Read() const { return ReadGoodTrace(path_); }

  TempFolder folder_;
  const std::string path_ = folder_ / "trace.reprise";
};

TEST_F(TraceWriterTest, WritesWhatTheReaderReads) {
  const std::vector<Event> events = RandomEvents(1, 100'000);
  auto writer = Open();
  for (const Event& event : events) ASSERT_TRUE(writer->Append(event).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->events_written(), events.size());
  EXPECT_EQ(writer->bytes_written(), static_cast<int64_t>(std::filesystem::file_size(path_)));
  const Trace trace = Read();
  EXPECT_EQ(trace.events, events);
  EXPECT_EQ(trace.metadata.host, "here");
  EXPECT_TRUE(trace.closed);
  EXPECT_TRUE(trace.whole());
  EXPECT_THAT(trace.notes, ::testing::IsEmpty());
}

TEST_F(TraceWriterTest, WhatIsFlushedCanBeReadWhileTheFileGrows) {
  auto writer = Open();
  EXPECT_TRUE(Read().events.empty());
  ASSERT_TRUE(writer->Append(Alloc(0, 4096)).ok());
  EXPECT_TRUE(Read().events.empty());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Read().events, std::vector<Event>{Alloc(0, 4096)});
  EXPECT_FALSE(Read().closed);
  EXPECT_EQ(Read().WhyNotWhole(), "recording was not finished");
}

TEST_F(TraceWriterTest, OverwritesAnOlderFile) {
  WriteFile(path_, std::string(100'000, 'x'));
  ASSERT_TRUE(Open()->Close().ok());
  EXPECT_TRUE(Read().closed);
}

TEST_F(TraceWriterTest, ClosesOnce) {
  auto writer = Open();
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->Append(Alloc(0, 1)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(writer->events_lost(), 1u);
}

TEST_F(TraceWriterTest, AFolderThatIsNotThereIsNamed) {
  const auto writer = TraceWriter::Open(folder_ / "none/trace.reprise", {});
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(writer.status()), HasSubstr("none/trace.reprise"));
}

TEST_F(TraceWriterTest, AFullDiskIsAnErrorFromTheStart) {
  const auto writer = TraceWriter::Open("/dev/full", {});
  EXPECT_THAT(Text(writer.status()), HasSubstr("/dev/full: cannot be written"));
}

TEST_F(TraceWriterTest, TellsTheReaderWhatWasDropped) {
  auto writer = Open();
  writer->SetDropped(17);
  ASSERT_TRUE(writer->Append(Alloc(0, 1)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Read().dropped, 17u);
  writer->SetDropped(18);
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(Read().dropped, 18u);
  EXPECT_EQ(Read().WhyNotWhole(), "events were dropped");
  EXPECT_THAT(Read().notes, ::testing::ElementsAre(HasSubstr("18 events were dropped")));
}

// Closed or not, such a trace is not all of the job, and no reader may take it for that.
TEST_F(TraceWriterTest, SaysWhyItEndsBeforeTheJobDoes) {
  for (const auto& [end, note] : {std::pair(TraceEnd::kFirstPlan, "--mode record"),
                                  std::pair(TraceEnd::kOverrun, "could not be written fast enough"),
                                  std::pair(TraceEnd::kUnknown, "does not know")}) {
    auto writer = Open();
    ASSERT_TRUE(writer->Append(Alloc(0, 1)).ok());
    ASSERT_TRUE(writer->Close(end).ok());
    const Trace trace = Read();
    EXPECT_TRUE(trace.closed);
    EXPECT_EQ(trace.end, end);
    EXPECT_FALSE(trace.whole());
    EXPECT_THAT(trace.notes, ::testing::ElementsAre(HasSubstr(note)));
  }
}

// A limit of the kernel stands for a disk that becomes full within a block: part of it is taken, then write
// fails.
TEST_F(TraceWriterTest, ADiskThatBecomesFullLeavesAPrefixAndCountsTheRest) {
  constexpr rlim_t kRoom = 20'000;
  const int result = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kRoom, kRoom};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = TraceWriter::Open(path_, {});
    if (!writer.ok()) return 1;
    const std::vector<Event> events = RandomEvents(2, 50'000);
    uint64_t refused = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      if (!(*writer)->Append(events[i]).ok()) ++refused;
      if (i % 1000 == 999) (*writer)->Flush().IgnoreError();
    }
    if ((*writer)->status().ok() || refused == 0) return 2;
    if ((*writer)->events_written() + (*writer)->events_lost() != events.size()) return 3;
    if ((*writer)->bytes_written() != static_cast<int64_t>(std::filesystem::file_size(path_))) return 4;
    if ((*writer)->Close().ok()) return 5;
    return (*writer)->events_written() % 1000 == 0 ? 0 : 6;
  });
  EXPECT_EQ(result, 0);
  const Trace trace = Read();
  EXPECT_GT(trace.events.size(), 0u);
  EXPECT_TRUE(IsPrefix(trace.events, RandomEvents(2, 50'000)));
  EXPECT_FALSE(trace.closed);
}

TEST_F(TraceWriterTest, StopsAtItsSizeLimitAndSaysSo) {
  auto writer = Open({.most_bytes = 20'000});
  const std::vector<Event> events = RandomEvents(3, 50'000);
  for (size_t i = 0; i < events.size(); ++i) {
    writer->Append(events[i]).IgnoreError();
    if (i % 1000 == 999) writer->Flush().IgnoreError();
  }
  EXPECT_EQ(writer->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(writer->events_written() + writer->events_lost(), events.size());
  EXPECT_LE(std::filesystem::file_size(path_), 20'000u);
  const Trace trace = Read();
  EXPECT_GT(trace.events.size(), 0u);
  EXPECT_EQ(trace.events.size(), writer->events_written());
  EXPECT_TRUE(IsPrefix(trace.events, events));
  EXPECT_TRUE(trace.closed);
  EXPECT_EQ(trace.WhyNotWhole(), "recording stopped at its size limit");
  EXPECT_THAT(trace.notes, ::testing::Contains(HasSubstr("size limit")));
}

TEST_F(TraceWriterTest, ThereIsAlwaysRoomToSayThatTheLimitWasReached) {
  for (int64_t limit = 2000; limit < 2100; ++limit) {
    auto writer = Open({.most_bytes = limit});
    for (uint64_t id = 0; writer->status().ok(); ++id) {
      writer->Append(Alloc(id, 4096)).IgnoreError();
      writer->Flush().IgnoreError();
    }
    EXPECT_LE(std::filesystem::file_size(path_), static_cast<uint64_t>(limit));
    EXPECT_EQ(Read().WhyNotWhole(), "recording stopped at its size limit") << limit;
  }
}

// A job that was started without a standard output prints nowhere, and not into our file.
TEST_F(TraceWriterTest, TakesNoneOfTheStandardDescriptors) {
  const int printed = InChild([&] {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(standard);
    auto writer = TraceWriter::Open(path_, {}, {});
    if (!writer.ok()) return 2;
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (write(standard, "printed", 7) >= 0) return 1;
    }
    return (*writer)->Append(Alloc(0, 1)).ok() && (*writer)->Close().ok() ? 0 : 3;
  });
  EXPECT_EQ(printed, 0);
  EXPECT_EQ(Read().events.size(), 1u);
}

// A job's next file has the lowest number that is free, as it has without us; also where numbers are few.
TEST_F(TraceWriterTest, TakesNoNumberThatTheJobWouldGet) {
  const int other = InChild([&] {
    const int lowest = dup(STDIN_FILENO);
    close(lowest);
    auto writer = TraceWriter::Open(path_, {}, {});
    return writer.ok() && dup(STDIN_FILENO) == lowest ? 0 : 1;
  });
  EXPECT_EQ(other, 0);
  const int few = InChild([&] {
    const rlim_t two_more = static_cast<rlim_t>(STDERR_FILENO) + 3;
    const rlimit limit{two_more, two_more};
    for (int fd = STDERR_FILENO + 1; fd < 1024; ++fd) close(fd);
    setrlimit(RLIMIT_NOFILE, &limit);
    return TraceWriter::Open(path_, {}, {}).ok() ? 0 : 1;
  });
  EXPECT_EQ(few, 0);
}

// A job that closes every descriptor it finds may get ours for its next file.
TEST_F(TraceWriterTest, NeverWritesIntoAFileThatTheJobOpened) {
  auto writer = Open();
  int ours = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) == path_) ours = std::stoi(entry.path().filename());
  }
  ASSERT_GE(ours, 0);
  const int theirs = open((folder_ / "theirs").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(dup2(theirs, ours), 0);
  ASSERT_TRUE(writer->Append(Alloc(0, 1)).ok());
  EXPECT_THAT(Text(writer->Flush()), HasSubstr("closed the trace's file descriptor"));
  writer.reset();
  EXPECT_EQ(std::filesystem::file_size(folder_ / "theirs"), 0u);
  EXPECT_EQ(close(ours), 0) << "the job's descriptor was closed";
  close(theirs);
}

}  // namespace
}  // namespace reprise::profiler
