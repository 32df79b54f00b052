// What a process leaves while it runs must not get in the way of what it leaves at its end, nor that of what it knew
// before: a disk may be slow, and a process may end where nothing can be read.
#include "replay/core/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <latch>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "tests/replay/stderr_now.h"
#include "tests/temp_folder.h"

namespace {

// Set by a test: a rename waits for it, as on a network file system that is full.
std::atomic<std::latch*> slow_rename{nullptr};
std::atomic<int> renames{0};

}  // namespace

// The C library's, for all of this program.
extern "C" int rename(const char* from, const char* to) noexcept {
  ++renames;
  if (std::latch* const done = slow_rename.exchange(nullptr)) done->wait();
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace reprise::replay {
namespace {

class CoreSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("REPRISE_OUT", folder_.path().c_str(), 1);
    session_ = CoreSession::Open(StderrNow(), nullptr);
    unsetenv("REPRISE_OUT");
    ASSERT_NE(session_, nullptr);
    trace_ = session_->BeginTrace(0, Bytes(4096), kMiB, [] { return Bytes(0); });
    ASSERT_NE(trace_, nullptr);
    session_->BeginInterim([] {}, [this] { return SummaryWith(1); });
  }

  Summary SummaryWith(int64_t requests) const {
    Summary summary = session_->NewSummary();
    summary.counters.requests = requests;
    return summary;
  }
  nlohmann::json Left() const {
    const absl::StatusOr<std::string> text = ReadFile(folder_ / "summary.json");
    return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
  }
  void TendUntilOneIsRenamed() {
    for (const int before = renames; renames == before;) session_->Tend();
  }
  void TendUntilOneIsLeft() {
    while (Left().is_null()) session_->Tend();
  }

  TempFolder folder_;
  std::unique_ptr<CoreTrace> trace_;
  std::unique_ptr<CoreSession> session_;
};

TEST_F(CoreSessionTest, TheLastSummaryTakesThePlaceOfThoseBefore) {
  TendUntilOneIsLeft();
  EXPECT_EQ(Left()["running"], true);
  session_->Report(SummaryWith(2));
  EXPECT_EQ(Left()["running"], false);
  EXPECT_EQ(Left()["requests"], 2);
}

TEST_F(CoreSessionTest, OneWithoutCountersLeavesTheOneBefore) {
  TendUntilOneIsLeft();
  Summary without = SummaryWith(0);
  without.complete = false;
  session_->Report(without);
  EXPECT_EQ(Left()["running"], true);
  EXPECT_EQ(Left()["requests"], 1);
}

TEST_F(CoreSessionTest, OneWithoutCountersIsWrittenWhereThereIsNone) {
  Summary without = SummaryWith(0);
  without.complete = false;
  session_->Report(without);
  EXPECT_EQ(Left()["complete"], false);
}

// A job may keep a summary.json of its own in the folder that it names for ours.
TEST_F(CoreSessionTest, WhatTheJobHasWrittenUnderTheSameNameStays) {
  ASSERT_TRUE(ReplaceFile(folder_ / "summary.json", R"({"loss": 1})").ok());
  session_->Report(SummaryWith(2));
  EXPECT_EQ(Left()["loss"], 1);
}

TEST_F(CoreSessionTest, SoDoesWhatItHasWrittenOverOurs) {
  TendUntilOneIsLeft();
  ASSERT_TRUE(ReplaceFile(folder_ / "summary.json", R"({"loss": 1})").ok());
  session_->Report(SummaryWith(2));
  EXPECT_EQ(Left()["loss"], 1);
}

TEST_F(CoreSessionTest, TheLastSummaryWaitsForADiskThatIsSlow) {
  std::latch disk(1);
  slow_rename = &disk;
  TendUntilOneIsRenamed();
  auto reported = std::async(std::launch::async, [&] { session_->Report(SummaryWith(2)); });
  EXPECT_EQ(reported.wait_for(std::chrono::seconds(8)), std::future_status::timeout);
  disk.count_down();
  reported.wait();
  EXPECT_EQ(Left()["requests"], 2);
}

}  // namespace
}  // namespace reprise::replay
