// Why: what a killed job leaves must be recent, thousands of ranks must not write all the time, and a job whose
// disk is slow must not be asked for one more summary while one is being written.
#include "replay/core/interim_summary.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

namespace reprise::replay {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(InterimSummary, HowOften) {
  EXPECT_EQ(InterimSummary::NsUntilNext(0), kSecond);
  EXPECT_EQ(InterimSummary::NsUntilNext(8 * kSecond), kSecond);
  EXPECT_EQ(InterimSummary::NsUntilNext(80 * kSecond), 10 * kSecond);
  EXPECT_EQ(InterimSummary::NsUntilNext(100'000 * kSecond), 600 * kSecond);
}

TEST(InterimSummary, OneAtATimeOnAThreadOfItsOwn) {
  std::atomic<int> begun = 0;
  std::atomic<bool> marked = false;
  std::latch go_on(1);
  std::thread::id ran_on;
  const int64_t start = MonotonicNs();
  {
    InterimSummary interim([&] { marked = true; },
                           [&] {
                             ran_on = std::this_thread::get_id();
                             ++begun;
                             go_on.wait();
                           });
    while (begun == 0) interim.Tend();
    EXPECT_GE(MonotonicNs() - start, kSecond);
    while (MonotonicNs() - start < 3 * kSecond) interim.Tend();
    EXPECT_EQ(begun, 1);
    go_on.count_down();
    while (begun == 1) interim.Tend();
  }
  EXPECT_EQ(begun, 2);
  EXPECT_TRUE(marked);
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(InterimSummary, AChildThatHasOurMemoryBeginsNone) {
  std::atomic<int> begun = 0;
  const int64_t start = MonotonicNs();
  InterimSummary interim([] {}, [&] { ++begun; });
  while (MonotonicNs() - start < kSecond) {
  }
  const pid_t child = vfork();
  if (child == 0) {
    interim.Tend();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(begun, 0);
  while (begun == 0 && MonotonicNs() - start < 5 * kSecond) interim.Tend();
  EXPECT_GE(begun, 1);
}

}  // namespace
}  // namespace reprise::replay
