// Jobs that repeat, with what frameworks take for granted about their memory.
#include <sched.h>

#include <filesystem>
#include <map>

#include "tests/cuda/scenarios/scenario.h"

namespace {

// Asserts what PyTorch's cudaMallocAsync backend and its memory statistics do.
class Framework {
 public:
  explicit Framework(CUstream stream) : stream_(stream) {}

  CUdeviceptr Take(size_t bytes) {
    CUdeviceptr block = 0;
    const CUresult result = cuMemAllocAsync(&block, bytes, stream_);
    if (result != CUDA_SUCCESS) DO(result);
    const auto [at, inserted] = live_.emplace(block, bytes);
    if (!inserted) std::printf("an address that is live was handed out again\n");
    if (at != live_.begin() && std::prev(at)->first + std::prev(at)->second > block)
      std::printf("blocks overlap\n");
    if (std::next(at) != live_.end() && block + bytes > std::next(at)->first) std::printf("blocks overlap\n");
    held_ += bytes;
    FillPieces(block, bytes, ++seed_, stream_);
    seeds_[block] = seed_;
    Check();
    return block;
  }

  void Give(CUdeviceptr block) {
    const auto at = live_.find(block);
    VerifyPieces(block, at->second, seeds_[block], stream_);
    held_ -= at->second;
    live_.erase(at);
    const CUresult result = cuMemFreeAsync(block, stream_);
    if (result != CUDA_SUCCESS) DO(result);
    Check();
  }

 private:
  void Check() {
    size_t unused = 0;
    size_t total = 0;
    cuMemGetInfo(&unused, &total);
    if (unused + held_ > total) std::printf("more free than there can be\n");
    cuuint64_t reserved = 0;
    cuuint64_t used = 0;
    cuMemPoolGetAttribute(DefaultPool(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    cuMemPoolGetAttribute(DefaultPool(0), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    if (reserved < used) std::printf("more used than reserved\n");
    if (used < held_) std::printf("less used than there is live\n");
  }

  CUstream stream_;
  std::map<CUdeviceptr, size_t> live_;
  std::map<CUdeviceptr, uint64_t> seeds_;
  size_t held_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace

SCENARIO(training_with_assertions) {
  const CUstream stream = NewStream();
  Framework framework(stream);
  std::vector<CUdeviceptr> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(framework.Take(kMiB + i * 64 * kKiB));
  for (int iteration = 0; iteration < 60; ++iteration) {
    std::vector<CUdeviceptr> activations;
    for (int layer = 0; layer < 10; ++layer)
      activations.push_back(framework.Take((1 + layer % 4) * 700 * kKiB));
    for (int layer = 9; layer >= 0; --layer) {
      const CUdeviceptr gradient = framework.Take((1 + layer % 3) * 300 * kKiB);
      framework.Give(activations[layer]);
      framework.Give(gradient);
    }
    if (iteration % 20 == 19) DO(cuStreamSynchronize(stream));
  }
  for (const CUdeviceptr block : weights) framework.Give(block);
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

SCENARIO(training_stream_ordered) {
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/false, 120});
  CheckBytes();
  CheckInfo(0);
  DO(cuStreamDestroy(stream));
}

SCENARIO(training_synchronous) {
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/true, 120});
  CheckBytes();
  CheckInfo(0);
  DO(cuStreamDestroy(stream));
}

// Some jobs make their streams anew in each iteration: what they do is the same none the less.
SCENARIO(training_on_a_new_stream_in_each_iteration) {
  for (int i = 0; i < 200; ++i) {
    const CUstream stream = NewStream();
    Train({stream, /*synchronous=*/false, 1});
    cuStreamDestroy(stream);
  }
  CheckBytes();
}

// cuMemFree waits for work on every stream, the block's user or not: libraries rely on it.
SCENARIO(training_where_another_stream_reads_until_the_free) {
  const CUstream writer = NewStream();
  const CUstream reader = NewStream();
  for (int i = 0; i < 120; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr next = 0;
    cuMemAlloc(&block, 3 * kMiB);
    FillPieces(block, 3 * kMiB, i, reader);
    VerifyPieces(block, 3 * kMiB, i, reader);
    cuMemFree(block);
    cuMemAlloc(&next, 3 * kMiB);
    FillPieces(next, 3 * kMiB, i + 1, writer);
    VerifyPieces(next, 3 * kMiB, i + 1, writer);
    cuMemFree(next);
  }
  CheckBytes();
  DO(cuStreamDestroy(writer));
  DO(cuStreamDestroy(reader));
}

// Memory goes from stream to stream while the work of the first goes on.
SCENARIO(training_on_one_stream_after_another) {
  CUstream streams[40] = {};
  int failed = 0;
  int turn = 0;
  for (CUstream& stream : streams) {
    stream = NewStream();
    ++turn;
    CUdeviceptr block = 0;
    failed += cuMemAllocAsync(&block, kMiB, stream) != CUDA_SUCCESS;
    for (int n = 0; n < 10; ++n) failed += WorkFill(block, 64 * kKiB, 100 * turn + n, stream) != CUDA_SUCCESS;
    failed += WorkVerify(block, 64 * kKiB, 100 * turn + 9, stream) != CUDA_SUCCESS;
    failed += cuMemFreeAsync(block, stream) != CUDA_SUCCESS;
  }
  NOTE(failed);
  CheckBytes();
  CheckInfo(0);
  for (const CUstream stream : streams) cuStreamDestroy(stream);
}

// What comes to be done in each iteration is another thing, and more, while a block from before lives on.
SCENARIO(training_that_changes_beside_a_block) {
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/false, 60});
  CUdeviceptr kept = 0;
  DO(cuMemAllocAsync(&kept, kMiB, stream));
  DO(WorkFill(kept, kMiB, 1, stream));
  int failed = 0;
  const auto check = [&](CUresult result) { failed += result != CUDA_SUCCESS; };
  for (int i = 0; i < 60; ++i) {
    CUdeviceptr blocks[12] = {};
    for (size_t k = 0; k < 12; ++k) {
      check(cuMemAllocAsync(&blocks[k], (k + 3) * kMiB, stream));
      check(WorkFill(blocks[k], kMiB, 100 * i + k, stream));
    }
    for (size_t k = 0; k < 12; ++k) {
      check(WorkVerify(blocks[k], kMiB, 100 * i + k, stream));
      check(cuMemFreeAsync(blocks[k], stream));
    }
    check(cuStreamSynchronize(stream));
  }
  NOTE(failed);
  DO(WorkVerify(kept, kMiB, 1, stream));
  DO(cuMemFreeAsync(kept, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// A thread may be bound to one CPU, as OpenMP binds the threads of its teams; those that it starts inherit that.
SCENARIO(training_on_a_bound_thread) {
  cpu_set_t all;
  cpu_set_t one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/false, 20});
  int bound = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t its;
    if (sched_getaffinity(std::stoi(thread.path().filename()), sizeof its, &its) == 0)
      bound += CPU_COUNT(&its) < CPU_COUNT(&all);
  }
  NOTE(bound == (CPU_COUNT(&all) > 1));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}
