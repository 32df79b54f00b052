// Why: planning must not run in the job's thread, must take none of the job's signals, and every request must
// be answered.
#include "replay/background_runner.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <thread>

namespace reprise::replay {
namespace {

TEST(BackgroundRunner, RunsEveryJobElsewhereWithSignalsBlocked) {
  int done = 0;
  std::thread::id ran_on;
  bool blocked = false;
  bool marked = false;
  {
    BackgroundRunner runner([&] { marked = true; });
    for (int i = 0; i < 3; ++i) {
      runner.Run([&] {
        ++done;
        ran_on = std::this_thread::get_id();
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked = sigismember(&mask, SIGTERM) == 1;
      });
    }
  }
  EXPECT_EQ(done, 3);
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(marked);
}

TEST(BackgroundRunner, NoThreadBeforeTheFirstJob) {
  bool marked = false;
  {
    BackgroundRunner runner([&] { marked = true; });
  }
  EXPECT_FALSE(marked);
}

}  // namespace
}  // namespace reprise::replay
