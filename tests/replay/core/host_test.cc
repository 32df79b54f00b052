// The seam from the core's side: what its entry points promise the preload library, in the states that a
// program under the library reaches only by bad luck (inside a signal handler, during a fork, after a double
// free).
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "replay/abi.h"
#include "tests/replay/stderr_now.h"

extern "C" const reprise_host_core* reprise_core_open_host(const reprise_host_shim* shim);

namespace {

thread_local int depth = 0;

// Set by a test: a planner's thread, which asks for its depth first of all, ends the process as it ends.
std::atomic<bool> ends_with_planner{false};
struct EndOfProcess {
  ~EndOfProcess() { std::exit(0); }
};

bool IsPlanner() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string_view(name) == "reprise-plan";
}

int* ThreadDepth() {
  if (ends_with_planner && IsPlanner()) thread_local const EndOfProcess end;
  return &depth;
}
reprise_passed passed{};
// Begun with the first test, in the child of one that ends: its stderr is another.
const reprise_host_shim& Shim() {
  static const reprise_host_shim shim = {
      REPRISE_ABI_VERSION,         sizeof(reprise_host_shim), 4096, ThreadDepth, &passed,
      reprise::replay::StderrNow()};
  return shim;
}

// What the job's own fork handlers do while the core holds its lock: set by a test.
std::atomic<bool> allocate_while_forking{false};
std::atomic<bool> was_served{true};
void* to_free = nullptr;

// One core a process, so one for all tests.
const reprise_host_core* Core() {
  static const reprise_host_core* const core = [] {
    // Registered before the core's handlers, so it runs after them, when the core's lock is held.
    pthread_atfork(
        [] {
          if (!allocate_while_forking) return;
          // The forking thread waits for another one that wants a block: neither may wait for the fork.
          std::thread([] {
            was_served = Core()->allocate(8192, 64) != nullptr;
            Core()->release(to_free);
          }).join();
        },
        nullptr, nullptr);
    const reprise_host_core* const opened = reprise_core_open_host(&Shim());
    pthread_atfork(opened->before_fork, opened->after_fork_in_parent, opened->after_fork_in_child);
    return opened;
  }();
  return core;
}

TEST(CoreHost, OpensOnce) {
  ASSERT_NE(Core(), nullptr);
  EXPECT_EQ(Core()->version, REPRISE_ABI_VERSION);
  EXPECT_EQ(reprise_core_open_host(&Shim()), nullptr);
}

TEST(CoreHost, RefusesAnotherVersion) {
  reprise_host_shim other = Shim();
  other.version = REPRISE_ABI_VERSION + 1;
  EXPECT_EQ(reprise_core_open_host(&other), nullptr);
}

TEST(CoreHost, ServesInItsRange) {
  errno = 77;
  void* const block = Core()->allocate(100000, 4096);
  ASSERT_NE(block, nullptr);
  const auto address = reinterpret_cast<uintptr_t>(block);
  EXPECT_EQ(address % 4096, 0u);
  EXPECT_GE(address, Core()->arena_begin);
  EXPECT_LT(address, Core()->arena_end);
  EXPECT_GE(Core()->usable_size(block), 100000u);
  std::memset(block, 1, Core()->usable_size(block));
  Core()->release(block);
  EXPECT_EQ(Core()->usable_size(block), 0u);
  EXPECT_EQ(errno, 77);
}

TEST(CoreHost, LeavesToTheRealAllocatorWhatItCannotPromise) {
  EXPECT_EQ(Core()->allocate(8192, size_t{1} << 22), nullptr);
  EXPECT_EQ(Core()->allocate(Core()->arena_end - Core()->arena_begin + 1, 64), nullptr);
  EXPECT_EQ(Core()->allocate(SIZE_MAX, 64), nullptr);
}

TEST(CoreHost, AFreeOfNothingIsIgnored) {
  char* const block = static_cast<char*>(Core()->allocate(8192, 64));
  Core()->release(block + 512);
  Core()->release(reinterpret_cast<void*>(Core()->arena_end - 512));
  EXPECT_GE(Core()->usable_size(block), 8192u);
  Core()->release(block);
  Core()->release(block);
}

TEST(CoreHost, ALateFreeIsTakenInByTheNextCall) {
  void* const one = Core()->allocate(8192, 64);
  void* const two = Core()->allocate(8192, 64);
  Core()->release_later(one);
  Core()->release_later(two);
  EXPECT_GE(Core()->usable_size(one), 8192u);
  Core()->release(Core()->allocate(1 << 20, 64));
  EXPECT_EQ(Core()->usable_size(one), 0u);
  EXPECT_EQ(Core()->usable_size(two), 0u);
}

TEST(CoreHost, ALateDoubleFreeEnds) {
  void* const block = Core()->allocate(8192, 64);
  Core()->release_later(block);
  Core()->release_later(block);
  Core()->release(Core()->allocate(1 << 20, 64));
  EXPECT_EQ(Core()->usable_size(block), 0u);
}

int StatusOf(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CoreHost, AForkedChildIsInert) {
  char* const block = static_cast<char*>(Core()->allocate(8192, 64));
  std::memset(block, 5, 8192);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    if (Core()->allocate(8192, 64) != nullptr) wrong |= 1;
    if (Core()->usable_size(block) < 8192) wrong |= 2;
    if (block[0] != 5 || block[8191] != 5) wrong |= 4;
    Core()->release(block);
    Core()->release_later(block);
    if (depth != 0) wrong |= 8;
    _exit(wrong);
  }
  EXPECT_EQ(StatusOf(child), 0);
  EXPECT_EQ(depth, 0);
  EXPECT_NE(Core()->allocate(8192, 64), nullptr);
  Core()->release(block);
}

bool IsResident(const char* address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  void* const begin = const_cast<char*>(address - reinterpret_cast<uintptr_t>(address) % page);
  return mincore(begin, page, &resident) == 0 && (resident & 1) != 0;
}

// One that lives on takes its new blocks elsewhere, and would have all that it has freed as well.
TEST(CoreHost, AForkedChildKeepsNoMemoryOfWhatItFrees) {
  constexpr size_t kBytes = (1 << 20) + 700;  // whose first and last page are others' too
  std::array<char*, 3> blocks{};
  for (char*& block : blocks) {
    block = static_cast<char*>(Core()->allocate(kBytes, 64));
    ASSERT_NE(block, nullptr);
    std::memset(block, 5, kBytes);
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = IsResident(blocks[1] + kBytes / 2) ? 0 : 1;
    Core()->release(blocks[1]);
    if (IsResident(blocks[1] + kBytes / 2)) wrong |= 2;
    for (const char* const block : {blocks[0], blocks[2]}) {
      if (std::count(block, block + kBytes, 5) != kBytes) wrong |= 4;
    }
    _exit(wrong);
  }
  EXPECT_EQ(StatusOf(child), 0);
  EXPECT_TRUE(IsResident(blocks[1] + kBytes / 2));
  for (char* const block : blocks) Core()->release(block);
}

TEST(CoreHost, AForkHandlerMayWaitForAThreadThatAllocates) {
  to_free = Core()->allocate(8192, 64);
  allocate_while_forking = true;
  const pid_t child = fork();
  allocate_while_forking = false;
  if (child == 0) _exit(0);
  EXPECT_EQ(StatusOf(child), 0);
  EXPECT_FALSE(was_served);
  Core()->release(Core()->allocate(1 << 20, 64));
  EXPECT_EQ(Core()->usable_size(to_free), 0u);
}

// As in a signal handler that interrupted the core: the thread has the lock already.
TEST(CoreHost, AForkInsideAForkGoesWithoutTheLock) {
  void* const block = Core()->allocate(8192, 64);
  Core()->before_fork();
  Core()->before_fork();
  EXPECT_EQ(depth, 2);
  Core()->after_fork_in_parent();
  EXPECT_EQ(depth, 1);
  size_t seen_meanwhile = 0;
  bool served_meanwhile = true;
  std::thread([&] {
    seen_meanwhile = Core()->usable_size(block);
    served_meanwhile = Core()->allocate(8192, 64) != nullptr;
  }).join();
  EXPECT_GE(seen_meanwhile, 8192u);
  EXPECT_FALSE(served_meanwhile);
  Core()->after_fork_in_parent();
  EXPECT_EQ(depth, 0);
  Core()->release(block);
  EXPECT_NE(Core()->allocate(8192, 64), nullptr);
}

// A job that trims in every round would fault all of it in again each time. Until there is a plan, whose thread is another,
// what is freed goes.
TEST(CoreHost, TrimsNothingThatAPlanCovers) {
  bool stays = false;
  for (int round = 0; round < 200000 && !stays; ++round) {
    std::array<char*, 16> blocks;
    for (size_t i = 0; i < blocks.size(); ++i)
      blocks[i] = static_cast<char*>(Core()->allocate((i + 1) << 19, 64));
    char* const middle = blocks.back() + (4 << 20);
    *middle = 1;
    for (char* const block : blocks) Core()->release(block);
    Core()->trim();
    stays = IsResident(middle);
    ASSERT_FALSE(stays && round == 0);
  }
  EXPECT_TRUE(stays);
}

// A fresh process, whose exit comes from inside a call (a signal handler that calls exit).
TEST(CoreHostDeathTest, AnExitFromInsideEnds) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Core()->allocate(8192, 64);
        ++depth;
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "ended inside an allocation");
}

void IterateOnce() {
  std::array<void*, 16> blocks;
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = Core()->allocate(8192 * (i + 1), 64);
  for (void* const block : blocks) Core()->release(block);
}

// As where all of the job's threads have ended, by pthread_exit, while one of ours is at work: the C library ends the
// process on that one.
TEST(CoreHostDeathTest, AnExitOnAThreadOfOursTellsAll) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ends_with_planner = true;
        Core()->release(Core()->allocate(size_t{65} << 20, 64));  // worth a summary
        while (true) IterateOnce();
      },
      ::testing::ExitedWithCode(0), "live peak +65.00 MiB");
}

}  // namespace
