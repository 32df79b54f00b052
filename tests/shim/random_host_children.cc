// The children of a random program. A child has what its parent had, and neither sees what the other does then.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/shim/random_host.h"

namespace {

constexpr int kMostForks = 2;

struct Pipe {
  int reads = -1, writes = -1;
};

Pipe OpenPipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(8);
  return {ends[0], ends[1]};
}

void Tell(const Pipe& pipe) {
  if (write(pipe.writes, "", 1) != 1) _exit(8);
}

void Await(const Pipe& pipe) {
  char byte = 0;
  if (read(pipe.reads, &byte, 1) < 0) _exit(8);
}

// Half of them, so that the others are seen to stay as they were.
void StampSome(World& world) {
  for (Block& block : world.blocks) {
    if (world.OneIn(2)) world.StampAnew(block);
  }
}

[[noreturn]] void BeChild(World& world, const Pipe& to_parent, const Pipe& to_child) {
  ++world.forks;
  world.CheckAll();
  StampSome(world);
  PlayBlocks(world, static_cast<int>(world.Draw(40)));
  if (world.OneIn(4)) ForkChild(world);
  const size_t end = world.Draw(5);
  fflush(stdout);
  Tell(to_parent);
  Await(to_child);
  world.CheckAll();
  PlayBlocks(world, 10);
  while (end == 0 && !world.blocks.empty()) FreeBlock(world);
  fflush(stdout);
  if (end == 1) exit(3);
  if (end == 2) raise(SIGKILL);
  if (end == 3)
    execl("/proc/self/exe", "random_host", std::to_string(world.Draw(1000)).c_str(), "30", nullptr);
  _exit(4);
}

int StatusOf(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace

void ForkChild(World& world) {
  if (world.forks >= kMostForks) return;
  fflush(stdout);
  const Pipe to_parent = OpenPipe(), to_child = OpenPipe();
  Block* hidden = nullptr;
  for (Block& block : world.blocks) {
    if (block.bytes >= 3 * 4096 && hidden == nullptr && reinterpret_cast<uintptr_t>(block.at) % 4096 == 0)
      hidden = &block;
  }
  const bool hides = world.OneIn(3);
  if (!hides) hidden = nullptr;
  if (hidden != nullptr && madvise(hidden->at, 4096, MADV_WIPEONFORK) != 0) world.Fail("madvise", *hidden, 0);
  const pid_t child = fork();
  if (child < 0) world.Report("fork", child);
  if (child == 0) {
    if (hidden != nullptr) {
      for (size_t i = 0; i < 4096; ++i) {
        if (hidden->at[i] != 0) world.Fail("what was to be wiped is there", *hidden, i);
      }
      if (madvise(hidden->at, 4096, MADV_KEEPONFORK) != 0) world.Fail("madvise", *hidden, 0);
      world.StampAnew(*hidden);
    }
    close(to_parent.reads);
    close(to_child.writes);
    BeChild(world, to_parent, to_child);
  }
  if (hidden != nullptr && madvise(hidden->at, 4096, MADV_KEEPONFORK) != 0) world.Fail("madvise", *hidden, 0);
  close(to_parent.writes);
  close(to_child.reads);
  Await(to_parent);
  world.CheckAll();
  StampSome(world);
  PlayBlocks(world, static_cast<int>(world.Draw(20)));
  fflush(stdout);
  Tell(to_child);
  world.Report("child", StatusOf(child));
  world.CheckAll();
  close(to_parent.reads);
  close(to_child.writes);
}

void SpawnProgram(World& world) {
  fflush(stdout);
  pid_t child = 0;
  if (world.OneIn(2)) {
    child = vfork();
    if (child == 0) _exit(5);
  } else {
    std::string seed = std::to_string(world.Draw(1000)), steps = "30", name = "random_host";
    char* const arguments[] = {name.data(), seed.data(), steps.data(), nullptr};
    world.Report("posix_spawn", posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ));
  }
  world.Report("program", StatusOf(child));
  world.CheckAll();
}
