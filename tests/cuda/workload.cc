// A training job of many streams and threads, drawn from a seed, that verifies every block before it frees
// it: a range that is used again before its last user has finished shows as corrupted bytes.
//
//   workload FIRST_SEED SEEDS ITERATIONS [MINUTES]
//
// For each seed: an iteration is drawn once (which blocks, how large, in what order, on which streams), and
// played ITERATIONS times. Its parts:
//   - stream-ordered blocks on the legacy default, blocking, non-blocking and the thread's own default
//   stream,
//   - blocks that another stream uses too, freed as PyTorch's cudaMallocAsync backend does it: an event
//   behind each
//     use, waited for by a stream of its own, on which the block is freed,
//   - blocks of the legacy default stream that a blocking one uses as well, or the other way round, which wait for each
//     other without an event,
//   - synchronous blocks, freed while work on them is still queued,
//   - blocks that outlive the iteration, and a little noise that does not repeat.
// Threads have streams and blocks of their own, so that each stream's sequence is the same every time.
// Prints one line of JSON. With MINUTES it goes round those seeds for as long, and prints one every minute,
// with the time that the first seed's job took anew and the memory of the whole process.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/cuda/device_work.h"

namespace {

constexpr size_t kSizes[] = {4096,    8192,    65536,   98304,   262144,  393216,  524288,  655360,
                             1048576, 1310720, 2097152, 2097664, 3145728, 4194304, 6291456, 10485760};

std::atomic<uint64_t> next_pattern{1};
std::atomic<uint64_t> failed_calls{0};

void Count(CUresult result) {
  if (result != CUDA_SUCCESS) failed_calls.fetch_add(1);
}

struct Block {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  uint64_t pattern = 0;
  bool synchronous = false;
  CUstream stream = nullptr;
};

enum class Kind { kOrdered, kShared, kSynchronous };

// One block of the iteration, from step `take` to step `give`.
struct Slot {
  size_t bytes;
  Kind kind;
  int stream;
  int other_stream;  // of a shared block
  int give;
};

constexpr int kStreams = 4;
constexpr int kLegacy = 0, kNonBlocking = 2;
constexpr int kEvents = 64;
constexpr uint64_t kLongSeed = 8;  // one in so many is this much longer

class Worker {
 public:
  Worker(CUcontext context, uint64_t seed, int number)
      : context_(context), random_(seed * 16 + number), dummy_(nullptr) {
    const int steps = 30 + Draw(40);
    for (int i = 0; i < steps; ++i) {
      const int lifetime = Draw(8) == 0 ? steps - i : 1 + Draw(12);
      const int kind = Draw(12);
      slots_.push_back({kSizes[Draw(std::size(kSizes))],
                        kind == 0  ? Kind::kSynchronous
                        : kind < 4 ? Kind::kShared
                                   : Kind::kOrdered,
                        Draw(kStreams), Draw(kStreams), std::min(steps - 1, i + lifetime)});
    }
    noise_.seed(seed * 16 + 8 + number);
  }

  void Play(int iterations) {
    Count(cuCtxSetCurrent(context_));
    Open();
    std::vector<Block> persistent;
    for (int i = 0; i < 3; ++i) persistent.push_back(Take(kSizes[8 + i], i == 0, streams_[i]));
    for (int i = 0; i < iterations; ++i) PlayIteration();
    for (const Block& block : persistent) Give(block);
    Close();
  }

 private:
  int Draw(size_t below) { return static_cast<int>(random_() % below); }

  void Open() {
    streams_[0] = nullptr;
    Count(cuStreamCreate(&streams_[1], CU_STREAM_DEFAULT));
    Count(cuStreamCreate(&streams_[2], CU_STREAM_NON_BLOCKING));
    streams_[3] = CU_STREAM_PER_THREAD;
    Count(cuStreamCreate(&dummy_, CU_STREAM_NON_BLOCKING));
    for (CUevent& event : events_) Count(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }

  void Close() {
    for (CUstream stream : {streams_[1], streams_[2], dummy_}) Count(cuStreamDestroy(stream));
    for (CUevent event : events_) Count(cuEventDestroy(event));
  }

  CUevent NextEvent() { return events_[next_event_++ % kEvents]; }

  // Work on `later` that comes after all that is queued on `earlier`.
  void Order(CUstream earlier, CUstream later) {
    const CUevent event = NextEvent();
    Count(cuEventRecord(event, earlier));
    Count(cuStreamWaitEvent(later, event, 0));
  }

  Block Take(size_t bytes, bool synchronous, CUstream stream) {
    return Take(bytes, synchronous, stream, stream);
  }

  Block Take(size_t bytes, bool synchronous, CUstream stream, CUstream fills) {
    Block block{0, bytes, next_pattern.fetch_add(1) << 24, synchronous, stream};
    Count(synchronous ? cuMemAlloc(&block.at, bytes) : cuMemAllocAsync(&block.at, bytes, stream));
    Count(FillPieces(block.at, bytes, block.pattern, fills));
    return block;
  }

  // Which stream uses a block of a slot, too, without an event.
  CUstream Unasked(const Slot& slot) const {
    const bool one_is_legacy = (slot.stream == kLegacy) != (slot.other_stream == kLegacy);
    const bool all_block = slot.stream != kNonBlocking && slot.other_stream != kNonBlocking;
    const bool unasked = slot.kind == Kind::kOrdered && one_is_legacy && all_block;
    return streams_[unasked ? slot.other_stream : slot.stream];
  }

  void Give(const Block& block) { Give(block, block.stream); }

  void Give(const Block& block, CUstream last) {
    Count(VerifyPieces(block.at, block.bytes, block.pattern, block.stream));
    if (last != block.stream) Count(VerifyPieces(block.at, block.bytes, block.pattern, last));
    Count(block.synchronous ? cuMemFree(block.at) : cuMemFreeAsync(block.at, block.stream));
  }

  // As tensor.record_stream(other) and a free: `other` reads the block, and the free waits for both streams.
  void GiveShared(const Block& block, CUstream other) {
    Order(block.stream, other);
    Count(VerifyPieces(block.at, block.bytes, block.pattern, other));
    Count(VerifyPieces(block.at, block.bytes, block.pattern, block.stream));
    Order(other, dummy_);
    Order(block.stream, dummy_);
    Count(cuMemFreeAsync(block.at, dummy_));
  }

  void GiveSlot(size_t i, const Block& block) {
    if (slots_[i].kind == Kind::kShared) {
      GiveShared(block, streams_[slots_[i].other_stream]);
    } else {
      Give(block, Unasked(slots_[i]));
    }
  }

  void PlayIteration() {
    std::vector<Block> blocks(slots_.size());
    for (size_t step = 0; step < slots_.size(); ++step) {
      const Slot& slot = slots_[step];
      blocks[step] = Take(slot.bytes, slot.kind == Kind::kSynchronous, streams_[slot.stream], Unasked(slot));
      for (size_t i = 0; i <= step; ++i) {
        if (slots_[i].give == static_cast<int>(step)) GiveSlot(i, blocks[i]);
      }
      if (noise_() % 400 == 0)
        Give(Take(kSizes[noise_() % std::size(kSizes)], false, streams_[noise_() % kStreams]));
    }
  }

  CUcontext context_;
  std::mt19937_64 random_;
  std::mt19937_64 noise_;
  std::vector<Slot> slots_;
  CUstream streams_[kStreams] = {};
  CUstream dummy_;
  CUevent events_[kEvents] = {};
  unsigned next_event_ = 0;
};

void PlaySeed(CUcontext context, uint64_t seed, int iterations) {
  std::mt19937_64 random(seed);
  const int threads = random() % 2 == 0 ? 1 : 2 + static_cast<int>(random() % 2);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([=] { Worker(context, seed, i).Play(iterations); });
  }
  for (std::thread& thread : running) thread.join();
  Count(cuCtxSynchronize());
}

void PlayNumber(CUcontext context, uint64_t seed, int iterations) {
  PlaySeed(context, seed, seed % kLongSeed == 0 ? static_cast<int>(kLongSeed) * iterations : iterations);
}

double ResidentMebibytes() {
  long total = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

void Soak(CUcontext context, uint64_t first, uint64_t seeds, int iterations, int minutes) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  uint64_t jobs = 0;
  for (int minute = 1; minute <= minutes; ++minute) {
    for (; Clock::now() - begin < std::chrono::minutes(minute); ++jobs) {
      PlayNumber(context, first + jobs % seeds, iterations);
    }
    const Clock::time_point before = Clock::now();
    PlayNumber(context, first, iterations);
    const std::chrono::duration<double, std::milli> probe = Clock::now() - before;
    std::printf(
        "{\"minute\": %d, \"jobs\": %llu, \"probe_ms\": %.1f, \"resident_mib\": %.1f, \"corrupted_bytes\": "
        "%llu, "
        "\"failed_calls\": %llu}\n",
        minute, static_cast<unsigned long long>(jobs), probe.count(), ResidentMebibytes(),
        static_cast<unsigned long long>(WorkCorruptedBytes()),
        static_cast<unsigned long long>(failed_calls.load()));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4 && count != 5) return 2;
  const uint64_t first = std::strtoull(arguments[1], nullptr, 10);
  const uint64_t seeds = std::strtoull(arguments[2], nullptr, 10);
  const int iterations = std::atoi(arguments[3]);
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 3;
  Count(cuCtxSetCurrent(context));
  // What threads ask for while the first request of all opens the core is the driver's, so that is none of
  // theirs.
  CUdeviceptr first_block = 0;
  Count(cuMemAllocAsync(&first_block, kSizes[0], nullptr));
  Count(cuMemFreeAsync(first_block, nullptr));
  if (count == 5) {
    Soak(context, first, seeds, iterations, std::atoi(arguments[4]));
    return 0;
  }
  uint64_t first_corrupted = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    PlayNumber(context, seed, iterations);
    if (first_corrupted == 0 && WorkCorruptedBytes() != 0) first_corrupted = seed - first + 1;
  }
  std::printf(
      "{\"corrupted_bytes\": %llu, \"seeds_until_corrupted\": %llu, \"failed_calls\": %llu, "
      "\"resident_mib\": %.1f}\n",
      static_cast<unsigned long long>(WorkCorruptedBytes()), static_cast<unsigned long long>(first_corrupted),
      static_cast<unsigned long long>(failed_calls.load()), ResidentMebibytes());
  return 0;
}
