// How a random program takes, grows, uses and frees its blocks, and what it asks for in vain.
#include <malloc.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "tests/shim/random_host.h"

namespace {

constexpr size_t kLeastAlignment = 16;  // of all that malloc gives
constexpr size_t kMostBlocks = 120;

// Volatile: the compiler knows what these do, and that nothing has so many bytes.
volatile size_t seen;
size_t Seen(size_t value) {
  seen = value;
  return seen;
}

std::align_val_t Aligned(size_t alignment) { return static_cast<std::align_val_t>(alignment); }

void* PosixMemalign(size_t alignment, size_t bytes, int& code) {
  void* block = nullptr;
  code = posix_memalign(&block, alignment, bytes);
  return block;
}

bool IsZero(const unsigned char* at, size_t bytes) {
  return std::all_of(at, at + bytes, [](unsigned char byte) { return byte == 0; });
}

int new_handlers_called;
void GiveUp() {
  ++new_handlers_called;
  std::set_new_handler(nullptr);
}

}  // namespace

// None of these is refused.
Block SomeNewBlock(World& world, size_t bytes, size_t alignment) {
  Block block = {.bytes = bytes, .alignment = alignment};
  int code = 0;
  void* at = nullptr;
  const size_t way = world.Draw(16);
  if (way == 0) {
    at = memalign(alignment, bytes);
  } else if (way == 1) {
    at = aligned_alloc(alignment, bytes);
  } else if (way == 2) {
    block.alignment = 4096;
    at = world.OneIn(2) ? valloc(bytes) : pvalloc(bytes);
  } else if (way == 3) {
    block.alignment = kLeastAlignment;
    at = world.OneIn(2) ? malloc(bytes) : realloc(nullptr, bytes);
  } else if (way == 4) {
    block.alignment = kLeastAlignment;
    at = calloc(1, Seen(bytes));
    if (at != nullptr && !IsZero(static_cast<unsigned char*>(at), bytes))
      world.Fail("calloc gave dirt", block, 0);
  } else if (way == 5) {
    block.kind = Kind::kDeleted;
    at = ::operator new(Seen(bytes), Aligned(alignment));
  } else if (way == 6) {
    block.kind = Kind::kDeleted;
    at = ::operator new[](Seen(bytes), Aligned(alignment), std::nothrow);
  } else {
    at = PosixMemalign(alignment, bytes, code);
  }
  block.at = static_cast<unsigned char*>(at);
  if (at == nullptr || code != 0) world.Fail("no memory", block, 0);
  return block;
}

void GiveBack(World& world, const Block& block) {
  world.Check(block);
  ForgetErrno();
  if (block.kind == Kind::kFreed) {
    free(block.at);
  } else if (world.OneIn(2)) {
    ::operator delete(block.at, Aligned(block.alignment));
  } else {
    ::operator delete(block.at, block.bytes, Aligned(block.alignment));
  }
  if (ErrnoOfCall() != 0) world.ReportCall("free", 0);
}

void Allocate(World& world) {
  if (world.blocks.size() >= kMostBlocks) return FreeBlock(world);
  const size_t bytes = world.SomeBytes();
  world.Add(SomeNewBlock(world, bytes, world.SomeAlignment()));
  world.Report("allocated", static_cast<int64_t>(bytes));
}

void FreeBlock(World& world) {
  if (world.blocks.empty()) return;
  const Block block = world.Remove(world.SomeBlock());
  world.Report("free", static_cast<int64_t>(block.bytes));
  GiveBack(world, block);
}

void UseBlock(World& world) {
  if (world.blocks.empty()) return;
  Block& block = world.blocks[world.SomeBlock()];
  world.Check(block);
  if (world.OneIn(2)) world.StampAnew(block);
}

void Reallocate(World& world) {
  if (world.blocks.empty()) return;
  const size_t index = world.SomeBlock();
  if (world.blocks[index].kind == Kind::kDeleted) return FreeBlock(world);
  Block block = world.Remove(index);
  world.Check(block);
  const size_t before = block.bytes;
  size_t bytes = world.SomeBytes();
  const size_t way = world.Draw(8);
  if (way == 0) bytes = before / 2 + world.Draw(3);
  if (way == 1) bytes = before - std::min(before, world.Draw(5000));
  if (way == 2) bytes = before + world.Draw(5000);
  if (way == 3) bytes = before - before / 3;
  if (way == 4 && before < 8 << 20) bytes = 2 * before;
  const bool by_parts = bytes % 8 == 0 && world.OneIn(2);
  ForgetErrno();
  void* const at = by_parts ? reallocarray(block.at, bytes / 8, 8) : realloc(block.at, bytes);
  world.ReportCall(by_parts ? "reallocarray" : "realloc", at != nullptr);
  if (at == nullptr) {
    if (bytes != 0) world.Fail("no memory to grow", block, bytes);
    return;  // freed
  }
  block.at = static_cast<unsigned char*>(at);
  world.Check(block, std::min({before, bytes, block.stamped}));
  block.bytes = bytes;
  block.alignment = kLeastAlignment;
  world.Add(block);
}

void AskForTooMuch(World& world) {
  struct sysinfo machine;
  sysinfo(&machine);
  const size_t all = (machine.totalram + machine.totalswap) * machine.mem_unit;
  const size_t too_much[] = {SIZE_MAX,        SIZE_MAX - 64,   SIZE_MAX / 2 + 1, SIZE_MAX / 2,
                             size_t{1} << 62, size_t{1} << 47, 3 * all,          SIZE_MAX - 4096};
  const size_t bytes = Seen(too_much[world.Draw(std::size(too_much))]);
  const size_t alignment = world.OneIn(4) ? size_t{1} << (20 + world.Draw(44)) : world.SomeAlignment();
  int code = 0;
  void* at = nullptr;
  const auto report = [&](const char* what) {
    world.ReportCall(what, at != nullptr);
    free(at);
    ForgetErrno();
  };
  ForgetErrno();
  at = PosixMemalign(alignment, bytes, code);
  world.Report("posix_memalign says", code);
  report("posix_memalign");
  at = memalign(alignment, bytes);
  report("memalign");
  at = aligned_alloc(alignment, bytes);
  report("aligned_alloc");
  at = valloc(bytes);
  report("valloc");
  at = pvalloc(bytes);
  report("pvalloc");
  at = calloc(bytes / 2, Seen(4));
  report("calloc");
  at = reallocarray(nullptr, bytes, Seen(3));
  report("reallocarray");
  at = ::operator new(bytes, Aligned(alignment), std::nothrow);
  report("operator new, nothrow");
  const int called = new_handlers_called;
  if (world.OneIn(2)) std::set_new_handler(GiveUp);
  bool threw = false;
  try {
    at = ::operator new(bytes, Aligned(alignment));
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  std::set_new_handler(nullptr);
  world.Report("threw", threw);
  world.Report("handlers", new_handlers_called - called);
  report("operator new");
}

void AskWrongly(World& world) {
  static constexpr size_t kWrong[] = {
      0, 1, 2, 3, 4, 12, 24, 40, 100, 4095, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2, SIZE_MAX};
  const size_t alignment = Seen(kWrong[world.Draw(std::size(kWrong))]);
  const size_t bytes = world.SomeBytes() % (1 << 20);
  const auto report = [&](const char* what, void* at) {
    world.ReportCall(what, at != nullptr);
    if (at != nullptr) memset(at, 0xE1, bytes);
    free(at);
    ForgetErrno();
  };
  int code = 0;
  void* block = &code;
  ForgetErrno();
  code = posix_memalign(&block, alignment, bytes);
  world.Report("posix_memalign says", code);
  if (code != 0) world.Report("untouched", block == &code);
  report("posix_memalign", code == 0 ? block : nullptr);
  report("memalign", memalign(alignment, bytes));
  report("aligned_alloc", aligned_alloc(alignment, bytes));
}

void GrowTooMuch(World& world) {
  if (world.blocks.empty()) return;
  const Block& block = world.blocks[world.SomeBlock()];
  if (block.kind == Kind::kDeleted) return;
  static constexpr size_t kTooMuch[] = {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 62, size_t{1} << 47};
  const size_t bytes = Seen(kTooMuch[world.Draw(std::size(kTooMuch))]);
  ForgetErrno();
  const void* const at =
      world.OneIn(2) ? realloc(block.at, bytes) : reallocarray(block.at, bytes, 1 + world.Draw(9));
  world.ReportCall("grows too much", at != nullptr);
  world.Check(block);
}

void TrimAll(World& world) {
  malloc_trim(0);
  world.CheckAll();
}

void PlayBlocks(World& world, int steps) {
  for (int i = 0; i < steps; ++i) {
    const size_t move = world.Draw(20);
    if (move < 8) {
      Allocate(world);
    } else if (move < 14) {
      FreeBlock(world);
    } else if (move < 17) {
      Reallocate(world);
    } else {
      UseBlock(world);
    }
  }
}
