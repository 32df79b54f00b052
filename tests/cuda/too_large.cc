// A training job in miniature, which may need more than its device has.
//
//   too_large ordered|synchronous ITERATIONS
//
// Its weights, 16 MiB, stay; an iteration takes its inputs, then 24 activations on the way forth and gives
// them back on the way back, with gradients in between: 112 MiB at the most. Each block is filled, verified
// before it is freed, and has to look like the device's to whoever asks. Stops at the first call that fails,
// as a job does, and prints one line of JSON.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/cuda/device_work.h"

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr int kLayers = 24;

struct Block {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  uint64_t pattern = 0;
};

class Job {
 public:
  explicit Job(bool synchronous) : synchronous_(synchronous) { Count(cuStreamCreate(&stream_, 1)); }

  // False: out of memory, or another error.
  bool Iterate() {
    std::vector<Block> inputs, activations;
    for (int i = 0; i < 4 && result_ == 0; ++i) inputs.push_back(Take(64 * kKiB));
    for (size_t layer = 0; layer < kLayers && result_ == 0; ++layer)
      activations.push_back(Take(kMiB + layer * 256 * kKiB));
    while (!activations.empty()) {
      const Block gradient = Take(activations.back().bytes / 2);
      Give(activations.back());
      Give(gradient);
      activations.pop_back();
    }
    for (const Block& input : inputs) Give(input);
    return result_ == 0;
  }

  void TakeWeights() {
    for (int i = 0; i < 4; ++i) weights_.push_back(Take(4 * kMiB));
  }
  void GiveWeights() {
    for (const Block& block : weights_) Give(block);
  }

  int result() const { return result_; }
  int strange() const { return strange_; }

 private:
  void Count(CUresult result) {
    if (result != CUDA_SUCCESS && result_ == 0) result_ = static_cast<int>(result);
  }

  Block Take(size_t bytes) {
    Block block{0, bytes, ++patterns_ << 24};
    Count(synchronous_ ? cuMemAlloc(&block.at, bytes) : cuMemAllocAsync(&block.at, bytes, stream_));
    if (result_ != 0) return {};
    live_ += bytes;
    Look(block);
    Count(FillPieces(block.at, bytes, block.pattern, stream_));
    return block;
  }

  void Give(const Block& block) {
    if (block.at == 0) return;
    live_ -= block.bytes;
    Count(VerifyPieces(block.at, block.bytes, block.pattern, stream_));
    Count(synchronous_ ? cuMemFree(block.at) : cuMemFreeAsync(block.at, stream_));
  }

  void Look(const Block& block) {
    unsigned type = 0;
    int ordinal = -1;
    void* host = nullptr;
    size_t unused = 0, total = 0;
    const bool devices =
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block.at) == CUDA_SUCCESS &&
        type == CU_MEMORYTYPE_DEVICE &&
        cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block.at) == CUDA_SUCCESS &&
        ordinal == 0 &&
        cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, block.at) != CUDA_SUCCESS;
    if (!devices) ++strange_;
    // What the host stands in for is nothing that the device has free. (Synchronous blocks may leave some
    // free.)
    if (cuMemGetInfo(&unused, &total) != CUDA_SUCCESS) ++strange_;
    if (unused > (!synchronous_ && live_ > total ? 0 : total)) ++strange_;
  }

  const bool synchronous_;
  CUstream stream_ = nullptr;
  std::vector<Block> weights_;
  uint64_t patterns_ = 0;
  size_t live_ = 0;
  int result_ = 0;
  int strange_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 3;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return 3;
  Job job(std::strcmp(arguments[1], "synchronous") == 0);
  job.TakeWeights();
  int iterations = 0;
  while (iterations < std::atoi(arguments[2]) && job.Iterate()) ++iterations;
  job.GiveWeights();
  if (cuCtxSynchronize() != CUDA_SUCCESS) return 4;
  std::printf("{\"iterations\": %d, \"result\": %d, \"strange\": %d, \"corrupted\": %llu", iterations,
              job.result(), job.strange(), static_cast<unsigned long long>(WorkCorruptedBytes()));
#ifndef __CUDACC__
  std::printf(", \"in_host_peak\": %llu", simPeakHostPhysicalBytes());
#endif
  std::printf("}\n");
  return 0;
}
