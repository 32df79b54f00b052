// What a random program asks the system about its blocks, and has it do to them. Whatever it changes, it puts back.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/shim/random_host.h"

namespace {

constexpr size_t kPage = 4096;

// Some whole pages of a block.
struct Pages {
  unsigned char* at = nullptr;
  size_t bytes = 0;
};

// The block has two pages or more, so that one lies whole in it.
Pages SomePages(World& world, const Block& block) {
  const auto begin = (reinterpret_cast<uintptr_t>(block.at) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(block.at) + block.bytes) / kPage * kPage;
  const size_t first = world.Draw(1 << 20), count = world.Draw(1 << 20);
  const size_t pages = (end - begin) / kPage;
  const size_t from = first % pages;
  return {reinterpret_cast<unsigned char*>(begin) + from * kPage, (1 + count % (pages - from)) * kPage};
}

Block* SomeLarge(World& world) {
  if (world.blocks.empty()) return nullptr;
  Block& block = world.blocks[world.SomeBlock()];
  return block.bytes >= 2 * kPage ? &block : nullptr;
}

bool AreZero(const Pages& pages) {
  return std::all_of(pages.at, pages.at + pages.bytes, [](unsigned char byte) { return byte == 0; });
}

// As the rest of the block must be, which is stamped in those pages again.
void CheckAround(World& world, Block& block, const Pages& pages) {
  const size_t begin = static_cast<size_t>(pages.at - block.at);
  world.Check(block, begin);
  // What lies behind is seen whole only when these pages are as they were.
  Block again = block;
  std::vector<unsigned char> behind(block.at + begin + pages.bytes, block.at + block.stamped);
  Stamp(again);
  if (block.stamped <= 4 << 20 && memcmp(behind.data(), block.at + begin + pages.bytes, behind.size()) != 0)
    world.Fail("what lies behind changed pages was overwritten", block, begin + pages.bytes);
}

// What the process has of it now.
size_t Has(int resource) {
  FILE* const file = fopen("/proc/self/statm", "r");
  size_t all = 0, data = 0;
  if (file == nullptr || fscanf(file, "%zu %*u %*u %*u %*u %zu", &all, &data) != 2) return 0;
  fclose(file);
  return (resource == RLIMIT_AS ? all : data) * kPage;
}

// Nothing is printed meanwhile, for stdio could take memory.
class Limited {
 public:
  Limited(int resource, rlim_t to) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit limit = {to, before_.rlim_max};
    setrlimit(resource_, &limit);
  }
  ~Limited() { setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  int resource_;
  rlimit before_ = {};
};

World* on_own_stack;
void PlayOnOwnStack() { PlayBlocks(*on_own_stack, 4); }

}  // namespace

void MoveThroughFile(World& world) {
  if (world.blocks.empty()) return;
  const Block& from = world.blocks[world.SomeBlock()];
  const size_t bytes = std::min<size_t>(from.bytes, 1 << 20);
  const int file = memfd_create("random_host", MFD_CLOEXEC);
  world.Report("pwrite", pwrite(file, from.at, bytes, 0));
  Block to = SomeNewBlock(world, bytes, world.SomeAlignment());
  world.Report("pread", pread(file, to.at, bytes, 0));
  close(file);
  if (memcmp(from.at, to.at, bytes) != 0) world.Fail("a file gave back something else", from, 0);
  world.Add(to);
}

void ReadByProcess(World& world) {
  if (world.blocks.size() < 2) return;
  const Block& from = world.blocks[world.SomeBlock()];
  std::vector<unsigned char> copy(std::min<size_t>(from.bytes, 1 << 20) + 1);
  const iovec local = {copy.data(), copy.size() - 1}, remote = {from.at, copy.size() - 1};
  ForgetErrno();
  const ssize_t bytes = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  world.ReportCall("process_vm_readv", bytes);
  if (bytes > 0 && memcmp(copy.data(), from.at, static_cast<size_t>(bytes)) != 0)
    world.Fail("the process reads something else", from, 0);
}

void Advise(World& world) {
  Block* const block = SomeLarge(world);
  if (block == nullptr) return;
  const Pages pages = SomePages(world, *block);
  const size_t way = world.Draw(8);
  world.Check(*block);
  const auto advise = [&](int advice) {
    if (madvise(pages.at, pages.bytes, advice) != 0)
      world.Fail("madvise", *block, static_cast<size_t>(advice));
  };
  if (way < 3) {
    advise(MADV_DONTNEED);
    if (!AreZero(pages)) world.Fail("pages are not zero", *block, 0);
    CheckAround(world, *block, pages);
  } else if (way < 5) {
    advise(MADV_FREE);
    CheckAround(world, *block, pages);
  } else if (way == 5) {
    advise(MADV_WILLNEED);
    advise(MADV_DONTDUMP);
    advise(MADV_DODUMP);
    advise(MADV_SEQUENTIAL);
    advise(MADV_NORMAL);
  } else if (way == 6) {
    std::vector<unsigned char> resident(pages.bytes / kPage);
    if (mincore(pages.at, pages.bytes, resident.data()) != 0) world.Fail("mincore", *block, 0);
  } else {
    advise(MADV_DONTFORK);
    advise(MADV_DOFORK);
  }
  world.Check(*block);
}

void Protect(World& world) {
  if (SomeLarge(world) == nullptr) return;
  const size_t index = world.SomeBlock();
  if (world.blocks[index].bytes < 2 * kPage) return;
  // Not there for what is played meanwhile.
  const Block block = world.Remove(index);
  const Pages pages = SomePages(world, block);
  const bool readable = world.OneIn(2);
  if (mprotect(pages.at, pages.bytes, readable ? PROT_READ : PROT_NONE) != 0)
    world.Fail("mprotect", block, 0);
  int ends[2];
  if (pipe(ends) != 0) world.Fail("pipe", block, 0);
  const ssize_t written = write(ends[1], pages.at, 100);
  const bool as_expected = readable ? written == 100 : written == -1 && errno == EFAULT;
  if (!as_expected) world.Fail("protected pages are read", block, 0);
  if (write(ends[1], "", 1) != 1 || read(ends[0], pages.at, 1) != -1 || errno != EFAULT)
    world.Fail("protected pages are written", block, 0);
  close(ends[0]);
  close(ends[1]);
  PlayBlocks(world, 3);
  if (mprotect(pages.at, pages.bytes, PROT_READ | PROT_WRITE) != 0) world.Fail("mprotect back", block, 0);
  world.Check(block);
  world.Keep(block);
}

void LockPages(World& world) {
  Block* const block = SomeLarge(world);
  if (block == nullptr || block->bytes > (1 << 20)) return;
  const Pages pages = SomePages(world, *block);
  if (mlock(pages.at, pages.bytes) != 0) return;  // as there are too many already
  if (madvise(pages.at, pages.bytes, MADV_DONTNEED) != -1) world.Fail("locked pages went", *block, 0);
  world.Check(*block);
  if (munlock(pages.at, pages.bytes) != 0) world.Fail("munlock", *block, 0);
}

// By pages like those that were there.
void MapOver(World& world) {
  Block* const block = SomeLarge(world);
  if (block == nullptr) return;
  const Pages pages = SomePages(world, *block);
  world.Check(*block);
  if (mmap(pages.at, pages.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
      pages.at)
    world.Fail("mmap", *block, 0);
  if (!AreZero(pages)) world.Fail("new pages are not zero", *block, 0);
  CheckAround(world, *block, pages);
}

// It is blocked in all of the program's threads, and ends a process that takes it in another.
void SignalItself(World& world) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  kill(getpid(), SIGUSR2);
  PlayBlocks(world, 3);
  static constexpr timespec kNow = {};
  world.Report("signal", sigtimedwait(&set, nullptr, &kNow) == SIGUSR2);
}

// Whether there is memory is for nobody to say, but what there is must be right.
void LimitMemory(World& world) {
  static constexpr int kResources[] = {RLIMIT_DATA, RLIMIT_AS, RLIMIT_MEMLOCK, RLIMIT_NPROC};
  const int resource = kResources[world.Draw(std::size(kResources))];
  static constexpr int kMost = 24;
  Block taken[kMost];
  const uint64_t seed = world.random();
  const size_t more = world.Draw(4 << 20);
  const bool has_none = world.OneIn(2);
  {
    const Limited limited(resource, has_none ? 0 : Has(resource) + more);
    std::mt19937_64 random(seed);
    for (Block& block : taken) {
      block.bytes = block.stamped = 1 + random() % (random() % 8 == 0 ? 1 << 20 : 1 << 15);
      block.alignment = size_t{16} << random() % 9;
      void* at = nullptr;
      ForgetErrno();
      const int code = posix_memalign(&at, block.alignment, block.bytes);
      if (code != 0 && code != ENOMEM)
        world.Fail("posix_memalign under a limit", block, static_cast<size_t>(code));
      if (code != 0) continue;
      block.at = static_cast<unsigned char*>(at);
      if (reinterpret_cast<uintptr_t>(at) % block.alignment != 0) world.Fail("not aligned", block, 0);
      world.StampAnew(block);
      if (random() % 2 == 0) continue;
      const size_t bytes = random() % (2 * block.bytes);
      ForgetErrno();
      at = realloc(block.at, bytes);
      if (at == nullptr && bytes != 0) {
        if (errno != ENOMEM) world.Fail("realloc under a limit", block, static_cast<size_t>(errno));
        world.Check(block);
        continue;
      }
      block.at = static_cast<unsigned char*>(at);
      world.Check(block, at == nullptr ? 0 : std::min(bytes, block.bytes));
      block.bytes = block.stamped = at == nullptr ? 0 : bytes;
      world.StampAnew(block);
    }
    for (const Block& block : taken) {
      if (block.at == nullptr) continue;
      world.Check(block);
      free(block.at);
    }
  }
  world.CheckAll();
  world.Report("was limited", resource);
}

// Whose code is not there any more when its blocks are freed, nor the code that took them in the stacks of a trace.
void LoadLibrary(World& world) {
  void* const library =
      dlopen(getenv("RANDOM_PLUGIN"), RTLD_NOW | (world.OneIn(2) ? RTLD_LOCAL : RTLD_GLOBAL));
  world.Report("dlopen", library != nullptr);
  if (library == nullptr) return;
  const auto take = reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(library, "plugin_takes"));
  for (int i = 0; i < 3; ++i) {
    Block block = {.bytes = world.SomeBytes(), .alignment = world.SomeAlignment()};
    block.at = static_cast<unsigned char*>(take(block.alignment, block.bytes));
    if (block.at == nullptr) world.Fail("no memory for a library", block, 0);
    world.Add(block);
  }
  world.Report("dlclose", dlclose(library));
}

void OnOwnStack(World& world) {
  constexpr size_t kBytes = 1 << 20;
  const std::unique_ptr<char[]> stack(new char[kBytes]);
  ucontext_t here, there;
  if (getcontext(&there) != 0) return;
  there.uc_stack.ss_sp = stack.get();
  there.uc_stack.ss_size = kBytes;
  there.uc_link = &here;
  on_own_stack = &world;
  makecontext(&there, PlayOnOwnStack, 0);
  world.Report("swapcontext", swapcontext(&here, &there));
}
