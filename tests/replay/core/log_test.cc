// The log writes into a job's stderr: only what was asked for, and never into a file that merely got its
// number.
#include "replay/core/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/replay/stderr_now.h"

namespace reprise::replay {
namespace {

// Puts an unnamed file in the place of stderr while it lives.
class StderrInFile {
 public:
  StderrInFile() : kept_(dup(STDERR_FILENO)), file_(std::tmpfile()) { dup2(fileno(file_), STDERR_FILENO); }
  ~StderrInFile() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
    std::fclose(file_);
  }
  std::string Content() const {
    std::string content(10000, '\0');
    const ssize_t bytes = pread(fileno(file_), content.data(), content.size(), 0);
    content.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return content;
  }

 private:
  int kept_;
  std::FILE* file_;
};

TEST(CoreLog, WritesUpToItsLevel) {
  const StderrInFile captured;
  BeginLog(LogLevel::kWarn, StderrNow());
  Log(LogLevel::kWarn, "one");
  Log(LogLevel::kInfo, "two");
  LogText(LogLevel::kWarn, "three\nfour\n");
  EXPECT_EQ(captured.Content(), "reprise: one\nthree\nfour\n");
}

TEST(CoreLog, OfALongLineItsBegin) {
  const StderrInFile captured;
  BeginLog(LogLevel::kWarn, StderrNow());
  Log(LogLevel::kWarn, std::string(PIPE_BUF, 'x'));
  Log(LogLevel::kWarn, "one");
  EXPECT_EQ(captured.Content(), "reprise: " + std::string(PIPE_BUF - 10, 'x') + "\nreprise: one\n");
}

TEST(CoreLog, WhatItSaysOfOthersTextIsOneLine) {
  const StderrInFile captured;
  BeginLog(LogLevel::kWarn, StderrNow());
  Log(LogLevel::kWarn, "cannot create a\nb/\x1b[2J; going on");
  EXPECT_EQ(captured.Content(), "reprise: cannot create a\\nb/\\x1b[2J; going on\n");
}

TEST(CoreLog, QuietIsQuiet) {
  const StderrInFile captured;
  BeginLog(LogLevel::kQuiet, StderrNow());
  Log(LogLevel::kWarn, "one");
  Log(LogLevel::kQuiet, "two");
  EXPECT_EQ(captured.Content(), "");
}

TEST(CoreLog, NotIntoAFileThatTookTheNumber) {
  const StderrInFile captured;
  BeginLog(LogLevel::kInfo, StderrNow());
  const StderrInFile other;
  Log(LogLevel::kWarn, "one");
  EXPECT_EQ(other.Content(), "");
}

TEST(CoreLog, NotIntoAFileThatTookTheNumberBeforeItBegan) {
  const reprise_stderr at_start = StderrNow();
  const StderrInFile captured;
  BeginLog(LogLevel::kInfo, at_start);
  Log(LogLevel::kWarn, "one");
  BeginLog(LogLevel::kInfo, {.open = 0});
  Log(LogLevel::kWarn, "two");
  EXPECT_EQ(captured.Content(), "");
}

TEST(CoreLog, LeavesErrnoAlone) {
  BeginLog(LogLevel::kInfo, StderrNow());
  const int kept = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  errno = 77;
  Log(LogLevel::kWarn, "one");
  EXPECT_EQ(errno, 77);
  dup2(kept, STDERR_FILENO);
  close(kept);
}

TEST(CoreLog, AReaderThatWentAwayDoesNotEndTheJob) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  BeginLog(LogLevel::kWarn, StderrNow());
  close(ends[0]);
  Log(LogLevel::kWarn, "one");  // SIGPIPE, by default the end of the process
  dup2(kept, STDERR_FILENO);
  close(ends[1]);
  close(kept);
}

TEST(CoreLog, AReaderThatReadsNothingIsWaitedForOnce) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string page(PIPE_BUF, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  BeginLog(LogLevel::kWarn, StderrNow());
  Log(LogLevel::kWarn, "one");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) Log(LogLevel::kWarn, "two");
  const auto waited = std::chrono::steady_clock::now() - begin;
  dup2(kept, STDERR_FILENO);
  for (const int fd : {ends[0], ends[1], kept}) close(fd);
  EXPECT_LT(waited, std::chrono::seconds(1));
}

TEST(WriteSignalsHeld, LeavesTheJobsOwnSignals) {
  static volatile sig_atomic_t caught = 0;
  caught = 0;
  std::signal(SIGPIPE, [](int) { caught = caught + 1; });
  sigset_t pipe_alone;
  sigemptyset(&pipe_alone);
  sigaddset(&pipe_alone, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_alone, nullptr);
  raise(SIGPIPE);
  { const WriteSignalsHeld held; }
  { const WriteSignalsHeld held; }
  EXPECT_EQ(caught, 0);
  pthread_sigmask(SIG_UNBLOCK, &pipe_alone, nullptr);
  EXPECT_EQ(caught, 1);
  {
    const WriteSignalsHeld held;
    raise(SIGPIPE);
  }
  EXPECT_EQ(caught, 1);
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace reprise::replay
