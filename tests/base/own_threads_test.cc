// Why: a thread of ours inherits what the job has bound the starting thread to, and must be in nobody's way there.
#include "base/own_threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace reprise {
namespace {

cpu_set_t Cpus() {
  cpu_set_t cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  return cpus;
}

TEST(OwnThreads, RunWhereTheProcessMay) {
  const cpu_set_t all = Cpus();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  SetProcessCpus(&all, sizeof all);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    std::thread([&] {
      const cpu_set_t inherited = Cpus();
      EXPECT_TRUE(CPU_EQUAL(&inherited, &one));
      LeaveTheStartersCpu();
      const cpu_set_t now = Cpus();
      EXPECT_TRUE(CPU_EQUAL(&now, &all));
    }).join();
  }).join();
}

TEST(OwnThreads, TakeNoPriorityAlong) {
  std::thread([] {
    const sched_param low = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &low) != 0) GTEST_SKIP() << "may not have a priority";
    std::thread([] {
      EXPECT_EQ(sched_getscheduler(0), SCHED_FIFO);
      LeaveTheStartersCpu();
      EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    }).join();
  }).join();
}

}  // namespace
}  // namespace reprise
