// The recorder runs inside somebody's job: it must keep up with it or lose whole events and say so, survive a
// killed process, a fork and a disk that fails, and never make the job wait.
#include "profiler/recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "base/files.h"
#include "profiler/trace_reader.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kLong = 60s;  // for what must succeed

class RecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Recorder> Start(RecorderOptions options = {}) {
    options.path = path_;
    auto recorder = Recorder::Start(options);
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    return *std::move(recorder);
  }

  Trace Read() const { return ReadGoodTrace(path_); }

  TempFolder folder_;
  const std::string path_ = folder_ / "trace.reprise";
};

TEST_F(RecorderTest, RecordsEverythingInOrder) {
  const std::vector<Event> events = RandomEvents(1, 100'000);
  auto recorder = Start({.ring_events = size_t{1} << 18});
  for (const Event& event : events) recorder->Append(event);
  ASSERT_TRUE(recorder->Finish(kLong).ok());
  EXPECT_EQ(Read().events, events);
  EXPECT_TRUE(Read().closed);
  const RecorderCounters counters = recorder->counters();
  EXPECT_EQ(counters.recorded, events.size());
  EXPECT_EQ(counters.written, events.size());
  EXPECT_EQ(counters.dropped + counters.lost, 0u);
  EXPECT_EQ(counters.bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
  EXPECT_EQ(counters.stopped, "");
}

TEST_F(RecorderTest, AMarkSurvives) {
  auto recorder = Start();
  recorder->Append(Mark(3));
  ASSERT_TRUE(recorder->Finish(kLong).ok());
  EXPECT_EQ(Read().events, std::vector<Event>{Mark(3)});
}

TEST_F(RecorderTest, WhatIsFlushedIsInTheFile) {
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  ASSERT_TRUE(recorder->Flush(kLong).ok());
  EXPECT_EQ(Read().events.size(), 1u);
  recorder->Append(Free(0));
  ASSERT_TRUE(recorder->Flush(kLong).ok());
  EXPECT_EQ(Read().events.size(), 2u);
  EXPECT_FALSE(Read().closed);
}

TEST_F(RecorderTest, SeveralThreadsMayFlushAtOnce) {
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) served += recorder->Flush(kLong).ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 80);
}

// Nobody asks for a block here: the recorder's own clock must.
TEST_F(RecorderTest, ABlockIsWrittenWithoutBeingAskedFor) {
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  while (recorder->counters().written == 0) std::this_thread::yield();
  EXPECT_EQ(Read().events, std::vector<Event>{Alloc(0, 4096)});
}

TEST_F(RecorderTest, WhatComesAfterTheEndIsCounted) {
  auto recorder = Start();
  ASSERT_TRUE(recorder->Finish(kLong).ok());
  recorder->Append(Alloc(0, 4096));
  recorder->Append(Free(0));
  EXPECT_EQ(recorder->counters().lost, 2u);
  EXPECT_EQ(recorder->counters().dropped, 0u) << "nothing is missing from what was recorded";
  EXPECT_TRUE(recorder->Flush(0s).ok());
  EXPECT_TRUE(recorder->Finish(0s).ok());
  EXPECT_TRUE(Read().closed);
}

TEST_F(RecorderTest, TheFileSaysWhyTheEventsEnd) {
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  recorder->EndsBy(TraceEnd::kFirstPlan);
  ASSERT_TRUE(recorder->Finish(kLong).ok());
  EXPECT_EQ(Read().end, TraceEnd::kFirstPlan);
  EXPECT_EQ(Read().events.size(), 1u);
}

// A job may be killed long after its trace has ended.
TEST_F(RecorderTest, StoppedItClosesTheFileByItself) {
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  recorder->SetPassed(Bytes(77));
  recorder->Stop(TraceEnd::kFirstPlan);
  while (!Read().closed) std::this_thread::yield();
  EXPECT_EQ(Read().end, TraceEnd::kFirstPlan);
  EXPECT_EQ(Read().events.size(), 1u);
  EXPECT_EQ(Read().passed, Bytes(77));
  recorder->Append(Alloc(1, 4096));
  EXPECT_TRUE(recorder->Finish(kLong).ok());
  EXPECT_EQ(recorder->counters().lost, 1u);
  EXPECT_EQ(recorder->counters().stopped, "");
}

TEST_F(RecorderTest, ItsDestructorFinishes) {
  {
    auto recorder = Start();
    recorder->Append(Alloc(0, 4096));
  }
  EXPECT_TRUE(Read().closed);
  EXPECT_EQ(Read().events.size(), 1u);
}

TEST_F(RecorderTest, TheSizeLimitStopsItAndIsTold) {
  auto recorder = Start({.most_bytes = 2000});
  const std::vector<Event> events = RandomEvents(2, 20'000);
  for (const Event& event : events) recorder->Append(event);
  EXPECT_EQ(recorder->Flush(kLong).code(), absl::StatusCode::kResourceExhausted);
  const RecorderCounters counters = recorder->counters();
  EXPECT_THAT(counters.stopped, HasSubstr("size limit of 2000 bytes"));
  EXPECT_EQ(counters.written + counters.lost, events.size());
  EXPECT_EQ(counters.dropped, 0u) << "what comes after the end is not missing from what came before it";
  EXPECT_EQ(Read().dropped, 0u);
  EXPECT_TRUE(counters.full);
  EXPECT_LE(std::filesystem::file_size(path_), 2000u);
  EXPECT_TRUE(IsPrefix(Read().events, events));
}

TEST_F(RecorderTest, AnUnwritableFolderIsToldAtTheStart) {
  const auto recorder = Recorder::Start({.path = folder_ / "none/trace.reprise"});
  EXPECT_THAT(Text(recorder.status()), HasSubstr("cannot be created"));
}

// Slow disk: the trace is a pipe that is read only when the test says so.
class SlowDisk : public RecorderTest {
 protected:
  SlowDisk() {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    // Both ends, so that opening does not wait; as small as a pipe can be, so that writing does.
    pipe_ = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    EXPECT_GT(fcntl(pipe_, F_SETPIPE_SZ, 4096), 0);
  }
  ~SlowDisk() override { close(pipe_); }

  // Reads the pipe while `action` runs, and what is left in it afterwards.
  void ReadWhile(const std::function<void()>& action) {
    std::atomic<bool> done{false};
    std::thread thread([&] {
      action();
      done = true;
    });
    char chunk[4096];
    while (true) {
      const bool last = done;
      const ssize_t got = read(pipe_, chunk, sizeof(chunk));
      if (got > 0) taken_.append(chunk, static_cast<size_t>(got));
      if (got <= 0 && last) break;
      pollfd readable{pipe_, POLLIN, 0};
      if (got <= 0) poll(&readable, 1, 10);
    }
    thread.join();
  }

  // From now on nothing can be written until the pipe is read.
  void Fill() {
    ReadWhile([] {});
    while (write(pipe_, "x", 1) == 1) ++junk_bytes_;
    junk_at_ = taken_.size();
  }

  // Lets the recorder finish and gives what it wrote. `finished` is what it said.
  Trace ReadToTheEnd(Recorder* recorder, absl::Status* finished) {
    ReadWhile([&] { *finished = recorder->Finish(kLong); });
    taken_.erase(junk_at_, junk_bytes_);
    auto trace = ParseTrace(taken_, "pipe");
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() ? *std::move(trace) : Trace();
  }

  int pipe_ = -1;
  std::string taken_;
  size_t junk_at_ = 0, junk_bytes_ = 0;
};

// The rule that keeps a trace consistent: a dropped allocation takes its free along, a recorded one never
// loses its.
TEST_F(SlowDisk, DropsAllocationsTogetherWithTheirFrees) {
  auto recorder = Start({.ring_events = 4096});
  const std::vector<Event> events = RandomEvents(3, 1'000'000);
  size_t appended = 0;
  const auto append_until_dropped = [&](uint64_t dropped) {
    while (recorder->counters().dropped < dropped) {
      ASSERT_LT(appended, events.size());
      recorder->Append(events[appended++]);
    }
  };
  append_until_dropped(2000);
  ReadWhile([&] { EXPECT_TRUE(recorder->Flush(kLong).ok()); });
  const size_t gap_ended = appended;
  append_until_dropped(recorder->counters().dropped + 2000);
  absl::Status finished;
  const Trace trace = ReadToTheEnd(recorder.get(), &finished);
  ASSERT_TRUE(finished.ok()) << finished;

  const RecorderCounters counters = recorder->counters();
  EXPECT_EQ(counters.recorded + counters.dropped, appended);
  EXPECT_EQ(counters.lost, 0u);
  EXPECT_EQ(trace.events.size(), counters.recorded);
  EXPECT_EQ(trace.dropped, counters.dropped);
  // Every free that happened to a recorded block is there, and no other (the reader has checked the latter).
  std::set<BlockId> freed;
  for (size_t i = 0; i < appended; ++i) {
    if (events[i].kind == EventKind::kFree) freed.insert(events[i].id);
  }
  size_t frees = 0, expected_frees = 0, recorded_after_gap = 0;
  for (const Event& event : trace.events) {
    frees += event.kind == EventKind::kFree;
    expected_frees += event.kind == EventKind::kAlloc && freed.contains(event.id);
    recorded_after_gap += event.kind == EventKind::kAlloc && event.time_ns > events[gap_ended].time_ns;
  }
  EXPECT_EQ(frees, expected_frees);
  EXPECT_GT(recorded_after_gap, 0u);
}

// More frees of recorded blocks than the ring and the block being written have room for: the one thing that
// cannot be left out.
TEST_F(SlowDisk, StopsWhereItWouldLoseAFree) {
  auto recorder = Start({.ring_events = 4096});
  constexpr uint64_t kBlocks = 2 * kMostBlockEvents;
  ReadWhile([&] {
    for (uint64_t id = 0; id < kBlocks; ++id) {
      recorder->Append(Alloc(id, 4096));
      if (id % 1000 != 0) continue;
      EXPECT_TRUE(recorder->Flush(kLong).ok());
    }
    EXPECT_TRUE(recorder->Flush(kLong).ok());
  });
  ASSERT_EQ(recorder->counters().written, kBlocks);
  Fill();
  for (uint64_t id = 0; id < kBlocks; ++id) {
    recorder->Append(Free(id));
    // The thread gets its time, so that its block fills up before the ring does.
    if (id % 1000 == 0) std::this_thread::yield();
  }
  EXPECT_GT(recorder->counters().dropped, 0u);
  recorder->EndsBy(TraceEnd::kFirstPlan);  // a plan is adopted while the disk stands still
  absl::Status finished;
  const Trace trace = ReadToTheEnd(recorder.get(), &finished);
  EXPECT_THAT(Text(finished), HasSubstr("too slow"));
  EXPECT_THAT(recorder->counters().stopped, HasSubstr("too slow"));
  EXPECT_EQ(trace.events.size(), recorder->counters().recorded);
  EXPECT_GT(trace.dropped, 0u);
  EXPECT_EQ(trace.end, TraceEnd::kOverrun);
  EXPECT_EQ(trace.dropped, recorder->counters().dropped);
  const RecorderCounters counters = recorder->counters();
  EXPECT_EQ(counters.written + counters.lost + counters.dropped, 2 * kBlocks);
  EXPECT_FALSE(counters.full);
}

TEST_F(SlowDisk, ForgetsADroppedBlockThatIsFreedAtOnce) {
  auto recorder = Start({.ring_events = 4096});
  Fill();
  uint64_t id = 0;
  while (recorder->counters().dropped == 0) recorder->Append(Alloc(id++, 4096));
  const uint64_t recorded = recorder->counters().recorded;
  recorder->Append(Free(id - 1));
  recorder->Append(Alloc(id, 4096));
  recorder->Append(Free(id));
  EXPECT_EQ(recorder->counters().recorded, recorded);
  EXPECT_EQ(recorder->counters().dropped, 4u);
  absl::Status finished;
  EXPECT_EQ(ReadToTheEnd(recorder.get(), &finished).events.size(), recorded);
  EXPECT_TRUE(finished.ok()) << finished;
}

TEST_F(SlowDisk, FlushGivesUpInTime) {
  auto recorder = Start();
  Fill();
  recorder->Append(Alloc(0, 4096));
  EXPECT_EQ(recorder->Flush(10ms).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(recorder->Finish(10ms).code(), absl::StatusCode::kDeadlineExceeded);
  absl::Status finished;
  EXPECT_EQ(ReadToTheEnd(recorder.get(), &finished).events.size(), 1u);
  EXPECT_TRUE(finished.ok()) << finished;
}

TEST_F(RecorderTest, AFullDiskStopsItAndTheRestIsCounted) {
  const int status = InChild([&] {
    // No handler for SIGXFSZ: the recorder's thread must not let it kill the job.
    const rlimit limit{3000, 3000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto recorder = Recorder::Start({.path = path_});
    if (!recorder.ok()) return 1;
    const std::vector<Event> events = RandomEvents(4, 20'000);
    for (const Event& event : events) (*recorder)->Append(event);
    if ((*recorder)->Finish(kLong).ok()) return 2;
    const RecorderCounters counters = (*recorder)->counters();
    if (counters.written + counters.lost + counters.dropped != events.size()) return 3;
    if (counters.stopped.find("cannot be written") == std::string::npos) return 4;
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsPrefix(Read().events, RandomEvents(4, 20'000)));
}

TEST_F(RecorderTest, WhatWasFlushedOutlivesKill) {
  const std::vector<Event> events = RandomEvents(5, 100'000);
  KillOnceReady([&](auto ready) {
    auto recorder = Recorder::Start({.path = path_});
    size_t i = 0;
    for (; i < 5000; ++i) (*recorder)->Append(events[i]);
    if (!(*recorder)->Flush(kLong).ok()) _exit(1);
    ready();
    for (; i < events.size(); ++i) (*recorder)->Append(events[i]);
    pause();
  });
  const Trace trace = Read();
  EXPECT_GE(trace.events.size(), 5000u);
  EXPECT_TRUE(IsPrefix(trace.events, events));
  EXPECT_FALSE(trace.closed);
}

// In a child the thread does not exist. Nothing there may wait for it, and the parent's file is not the
// child's.
class Forked : public RecorderTest, public ::testing::WithParamInterface<bool> {};

TEST_P(Forked, AChildIsInertAndLeavesTheFileAlone) {
  const bool told = GetParam();
  auto recorder = Start();
  recorder->Append(Alloc(0, 4096));
  ASSERT_TRUE(recorder->Flush(kLong).ok());
  const std::string before = *ReadFile(path_);
  const int status = InChild([&] {
    if (told) recorder->AbandonAfterFork();
    for (uint64_t id = 1; id < 1'000'000; ++id) recorder->Append(Alloc(id, 4096));
    if (recorder->Flush(1h).code() != absl::StatusCode::kFailedPrecondition) return 1;
    if (recorder->Finish(1h).code() != absl::StatusCode::kFailedPrecondition) return 2;
    if (recorder->counters().written != 0) return 3;
    recorder.reset();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*ReadFile(path_), before);
  recorder->Append(Free(0));
  ASSERT_TRUE(recorder->Finish(kLong).ok());
  EXPECT_EQ(Read().events.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(RecorderTest, Forked, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Told" : "Untold"; });

TEST_F(RecorderTest, ItsThreadHasANameAndTakesNoSignals) {
  auto recorder = Start();
  bool found = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string status = *ReadFile(task.path() / "status");
    if (status.find("Name:\treprise-trace\n") == std::string::npos) continue;
    found = true;
    const size_t mask = status.find("SigBlk:\t") + 8;
    // All but SIGKILL, SIGSTOP and the two signals that belong to the C library.
    EXPECT_EQ(std::stoull(status.substr(mask, 16), nullptr, 16) | 0x180040100, 0xffffffffffffffff);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace reprise::profiler
