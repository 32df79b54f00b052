// What a random program has on the devices, what it may do with each of these now, and the moves it can make. Every call of
// a move is valid, or refused by the driver without harm; what it prints does not depend on addresses, and not on what
// docs/cuda.md lets differ under the preload library.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tests/cuda/device_work.h"

// A call that this program cannot do without: a failure ends it with a message.
#define NEED(call) Need(#call, call)
void Need(const char* call, CUresult result);

struct Context {
  CUcontext handle = nullptr;
  CUgreenCtx green = nullptr;  // if it is one
  int device = 0;
  bool primary = false;
  bool alive = true;
};

struct Stream {
  CUstream handle = nullptr;
  CUevent event = nullptr;  // recorded for others to wait for
  size_t context = 0;
  int thread = 0;  // whose own default stream it is, if it is one
  bool non_blocking = false;
  bool alive = true;

  bool IsDefault() const { return handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD; }
};

struct Pool {
  CUmemoryPool handle = nullptr;
  int device = 0;
  bool devices_own = false;
  bool alive = true;
};

struct Block {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  uint64_t pattern = 0;  // what it is filled with
  size_t context = 0;
  int device = 0;
  std::optional<size_t> pool;  // none: a synchronous one
  std::optional<size_t> last;  // the stream that used it last; none: all use is over

  bool IsSynchronous() const { return !pool; }
};

struct World {
  explicit World(uint64_t seed);

  size_t Draw(size_t below) { return random() % below; }
  bool OneIn(size_t n) { return Draw(n) == 0; }
  size_t OneOf(const std::vector<size_t>& choice) { return choice[Draw(choice.size())]; }
  uint64_t NextPattern() { return next_pattern++ << 24; }

  // Prints a result, with the step it belongs to.
  void Report(const char* what, int64_t value) const;

  void MakeCurrent(size_t context) const { NEED(cuCtxSetCurrent(contexts[context].handle)); }
  size_t SomeContext();  // a live one
  void MakeSomeContextCurrent() { MakeCurrent(SomeContext()); }

  // Work may be queued in the stream, and waited for, by this thread now.
  bool IsUsable(size_t stream) const;
  bool CanBeWaitedFor(std::optional<size_t> stream) const { return !stream || IsUsable(*stream); }
  std::vector<size_t> UsableStreams() const;  // never none: the primary contexts' legacy ones always are
  size_t SomeStream() { return OneOf(UsableStreams()); }
  size_t SomeStreamFor(const Block& block);  // whose device reaches the block's memory

  void Finish(std::optional<size_t> stream) const;
  // Work on `later` comes after what is queued on `earlier`.
  void Order(std::optional<size_t> earlier, size_t later) const;

  size_t AddStream(size_t context);
  // A context's default streams are there from the start: the legacy one, and each thread's own.
  void AddLegacyStream(size_t context);
  void AddOwnStream(size_t context);
  void AddPool(CUmemoryPool pool, int device, bool devices_own);

  std::mt19937_64 random;
  int devices = 0;
  int step = 0;
  int thread = 0;                 // 0: the first one
  std::vector<Context> contexts;  // first the devices' primary ones, in order
  std::vector<Stream> streams;
  std::vector<Pool> pools;
  std::vector<Block> blocks;         // live
  std::vector<size_t> device_pools;  // what each device's cuMemAllocAsync takes from
  std::optional<size_t> captured;    // the one stream that is being captured
  uint64_t next_pattern = 1;
};

// random_world.cc
void OpenStream(World& world);
void CloseStream(World& world);
void OpenContext(World& world);
void EndContext(World& world);
void EndPrimaryContext(World& world);
void OpenPool(World& world);
void ClosePool(World& world);
void SetPoolOfDevice(World& world);
void TrimPool(World& world);
void BeginOrEndCapture(World& world);
void WaitForStream(World& world);
void WaitForContext(World& world);

// random_blocks.cc
void Allocate(World& world);
void UseBlock(World& world);
void FreeBlock(World& world);
void AskAboutBlock(World& world);
void AskAboutPools(World& world);
void AskForMemory(World& world);
