// Why: planning must not run in the job's thread, must take none of the job's signals, and every request must
// be answered.
#include "replay/background_runner.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

// A process ends with its last thread.
TEST(BackgroundRunner, ItsThreadEndsWithTheLastJob) {
  std::atomic<pid_t> ran_on = 0;
  BackgroundRunner runner;
  for (int i = 0; i < 3; ++i) {
    ran_on = 0;
    runner.Run([&] { ran_on = gettid(); });
    while (ran_on == 0 || tgkill(getpid(), ran_on, 0) == 0) std::this_thread::yield();
    EXPECT_EQ(errno, ESRCH);
  }
}

TEST(BackgroundRunner, NoThreadBeforeTheFirstJob) {
  bool marked = false;
  {
    BackgroundRunner runner([&] { marked = true; });
  }
  EXPECT_FALSE(marked);
}

// For as long as it lives no thread can be made: there is no such room for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t immense = usual_;
    pthread_attr_setstacksize(&immense, size_t{1} << 46);
    pthread_setattr_default_np(&immense);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t usual_{};
};

TEST(BackgroundRunner, WhereNoThreadCanBeHad) {
  std::thread::id ran_on;
  int tried = 0;
  int ran = 0;
  {
    BackgroundRunner runner;
    {
      const NoThreads no_threads;
      runner.Run([&] { ran_on = std::this_thread::get_id(); });
      EXPECT_FALSE(runner.TryRun([&] { ++tried; }));
    }
    EXPECT_TRUE(runner.TryRun([&] { ++ran; }));
  }
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(tried, 0);
  EXPECT_EQ(ran, 1);
}

// It may be in the middle of an allocation of the job's, and of what nobody else would bring to an end.
TEST(BackgroundRunner, ACallerThatIsToBeCancelledGoesOn) {
  int ran = 0;
  bool gone_on = false;
  std::thread([&] {
    BackgroundRunner runner;
    const NoThreads no_threads;
    pthread_cancel(pthread_self());
    runner.Run([&] {
      pthread_testcancel();
      ++ran;
    });
    gone_on = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }).join();
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(gone_on);
}

// A thread there would end with the child, and what it has begun would stay as it is.
TEST(BackgroundRunner, AChildThatHasOurMemoryHasNoThread) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer makes a fork of vfork: the child has memory of its own";
#endif
  std::thread::id ran_on;
  int tried = 0;
  BackgroundRunner runner;
  const pid_t child = vfork();
  if (child == 0) {
    runner.Run([&] { ran_on = std::this_thread::get_id(); });
    if (runner.TryRun([&] { ++tried; })) _exit(1);
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(tried, 0);
}

}  // namespace
}  // namespace reprise::replay
