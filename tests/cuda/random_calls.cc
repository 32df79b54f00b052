// A random program of CUDA, drawn from a seed: contexts of all kinds, streams, threads, pools and captures that come and go, and
// memory of all kinds that is used and freed meanwhile. It prints the result of each call, and verifies each block before it
// frees it. What it prints must be the same with and without the preload library (random_calls_test.py).
//
//   random_calls SEED STEPS [train] [threads] [no-captures]
//
// train: after a training that repeats, in stream order and synchronous, so that what follows meets a plan. threads: now and then
// another thread goes on, with a default stream of its own, and ends. no-captures: leaves them out, so that a synchronous free
// always waits. There are as many devices as the driver has; each may use the others' pools.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string_view>
#include <thread>

#include "tests/cuda/random_world.h"
#include "tests/random_move.h"

namespace {

struct Options {
  bool train = false;
  bool threads = false;
  bool captures = true;
};

constexpr Move<World> kMoves[] = {
    {32, Allocate},         {28, FreeBlock},     {12, UseBlock},       {3, OpenStream},
    {3, CloseStream},       {1, OpenContext},    {1, EndContext},      {1, EndPrimaryContext},
    {4, BeginOrEndCapture}, {5, AskAboutBlock},  {2, AskAboutPools},   {2, AskForMemory},
    {1, OpenPool},          {1, ClosePool},      {1, SetPoolOfDevice}, {1, TrimPool},
    {2, WaitForStream},     {2, WaitForContext},
};

constexpr size_t kLayerBytes[] = {1 << 20, 96 << 10, 3 << 20, 512 << 10, (2 << 20) + 512, 64 << 10};
constexpr int kLayers = 12;
constexpr int kIterationsInOrder = 60, kIterationsSynchronous = 16;
constexpr size_t kStepsBetweenThreads = 30;

void PlayStep(World& world, const Options& options) {
  ++world.step;
  world.MakeSomeContextCurrent();
  void (*const move)(World&) = SomeMove<World>(kMoves, world).play;
  if (move != BeginOrEndCapture || options.captures) move(world);
  if (const uint64_t bytes = WorkCorruptedBytes()) {
    world.Report("corrupted bytes", bytes);
    std::exit(1);
  }
}

// The thread that plays ends, and its own default streams with it.
void EndThread(World& world) {
  const auto is_own = [&](const Stream& stream) {
    return stream.alive && stream.handle == CU_STREAM_PER_THREAD && stream.thread == world.thread;
  };
  for (Block& block : world.blocks) {
    if (!block.last || !is_own(world.streams[*block.last])) continue;
    world.Finish(block.last);
    block.last.reset();
  }
  for (Stream& stream : world.streams) {
    if (!is_own(stream)) continue;
    NEED(cuEventDestroy(stream.event));
    stream.alive = false;
  }
  world.thread = 0;
}

void PlayThread(World& world, const Options& options, int thread, int last_step) {
  world.thread = thread;
  for (size_t context = 0; context < world.contexts.size(); ++context) {
    if (world.contexts[context].alive) world.AddOwnStream(context);
  }
  while (world.step < last_step) PlayStep(world, options);
  EndThread(world);
}

void Play(World& world, const Options& options, int steps) {
  for (int threads = 0; world.step < steps;) {
    if (options.threads && world.OneIn(kStepsBetweenThreads)) {
      const int last_step = std::min(steps, world.step + 5 + static_cast<int>(world.Draw(60)));
      // Nothing is current here meanwhile, as that may come to its end.
      NEED(cuCtxSetCurrent(nullptr));
      std::thread(PlayThread, std::ref(world), options, ++threads, last_step).join();
    } else {
      PlayStep(world, options);
    }
  }
}

class Training {
 public:
  Training(CUstream stream, bool synchronous) : stream_(stream), synchronous_(synchronous) {}

  void Iterate() const {
    CUdeviceptr kept[kLayers];
    for (int layer = 0; layer < kLayers; ++layer) kept[layer] = Take(Bytes(layer));
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const size_t gradient_bytes = Bytes(layer) + 512;
      const CUdeviceptr gradient = Take(gradient_bytes);
      Give(kept[layer], Bytes(layer));
      Give(gradient, gradient_bytes);
    }
    NEED(cuStreamSynchronize(stream_));
  }

 private:
  static size_t Bytes(int layer) { return kLayerBytes[layer % std::size(kLayerBytes)] + layer * 4096; }

  CUdeviceptr Take(size_t bytes) const {
    CUdeviceptr block = 0;
    NEED(synchronous_ ? cuMemAlloc(&block, bytes) : cuMemAllocAsync(&block, bytes, stream_));
    NEED(FillPieces(block, bytes, block, stream_));
    return block;
  }

  void Give(CUdeviceptr block, size_t bytes) const {
    NEED(VerifyPieces(block, bytes, block, stream_));
    NEED(synchronous_ ? cuMemFree(block) : cuMemFreeAsync(block, stream_));
  }

  CUstream stream_;
  bool synchronous_;
};

void Train(World& world) {
  const CUstream stream = world.streams[world.AddStream(0)].handle;
  const Training in_order(stream, false), synchronous(stream, true);
  for (int i = 0; i < kIterationsInOrder; ++i) in_order.Iterate();
  for (int i = 0; i < kIterationsSynchronous; ++i) synchronous.Iterate();
}

void Finish(World& world) {
  if (world.captured) BeginOrEndCapture(world);
  for (size_t context = 0; context < world.contexts.size(); ++context) {
    if (!world.contexts[context].alive) continue;
    world.MakeCurrent(context);
    NEED(cuCtxSynchronize());
  }
  AskAboutPools(world);
  world.Report("corrupted bytes", WorkCorruptedBytes());
}

bool Read(std::string_view word, Options& options) {
  if (word == "train") return options.train = true;
  if (word == "threads") return options.threads = true;
  if (word == "no-captures") return !(options.captures = false);
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  for (int i = 3; i < count; ++i) {
    if (!Read(arguments[i], options)) return 2;
  }
  if (count < 3) return 2;
  World world(std::strtoull(arguments[1], nullptr, 10));
  if (options.train) Train(world);
  Play(world, options, std::atoi(arguments[2]));
  Finish(world);
  return WorkCorruptedBytes() == 0 ? 0 : 1;
}
