// The runtime's view: its last error, and the end of a device. The runtime keeps errors of its own, which
// nobody but the program may cause or clear.
#include <cuda_runtime_api.h>

#include "tests/cuda/scenarios/scenario.h"

namespace {

CUdeviceptr Address(void* block) { return reinterpret_cast<CUdeviceptr>(block); }

void LastErrors() {
  DO(cudaPeekAtLastError());
  DO(cudaGetLastError());
  DO(cudaGetLastError());
}

}  // namespace

SCENARIO(runtime_last_error) {
  void* block = nullptr;
  cudaStream_t stream = nullptr;
  DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  LastErrors();
  DO(cudaMalloc(&block, size_t{1} << 50));
  DO(cudaMallocAsync(&block, kMiB, stream));  // succeeds, and leaves the error
  DO(cudaFreeAsync(block, stream));
  LastErrors();
  DO(cudaMallocAsync(&block, size_t{1} << 50, stream));
  LastErrors();
  DO(cudaFree(&block));
  LastErrors();
  DO(cudaFree(nullptr));
  DO(cudaFreeAsync(nullptr, stream));
  LastErrors();
  DO(cudaMalloc(nullptr, kMiB));
  LastErrors();
  DO(cudaMalloc(&block, 0));
  NOTE(block == nullptr);
  LastErrors();
  for (int i = 0; i < 50; ++i) {
    if (cudaMallocAsync(&block, kMiB, stream) != 0) DO(cudaGetLastError());
    if (cudaFreeAsync(block, stream) != 0) DO(cudaGetLastError());
  }
  LastErrors();
  DO(cudaStreamDestroy(stream));
}

SCENARIO(runtime_pointer_attributes) {
  void* block[2] = {};
  DO(cudaMalloc(&block[0], kMiB));
  DO(cudaMallocAsync(&block[1], kMiB, nullptr));
  for (void* each : block) {
    cudaPointerAttributes attributes = {};
    DO(cudaPointerGetAttributes(&attributes, static_cast<char*>(each) + 100));
    NOTE(attributes.type);
    NOTE(attributes.device);
    NOTE(attributes.hostPointer == nullptr);
    NOTE(attributes.devicePointer == static_cast<char*>(each) + 100);
  }
  DO(cudaFree(block[0]));
  DO(cudaFree(block[1]));
  CheckBytes();
}

SCENARIO(runtime_device_reset) {
  for (int i = 0; i < 3; ++i) {
    void* synchronous = nullptr;
    void* ordered = nullptr;
    DO(cudaMalloc(&synchronous, kMiB));
    DO(cudaMallocAsync(&ordered, kMiB, nullptr));
    DO(WorkFill(Address(ordered), kMiB, 1, nullptr));
    DO(cudaDeviceReset());
    size_t unused = 0;
    size_t total = 0;
    DO(cudaMemGetInfo(&unused, &total));
    NOTE(unused <= total);
    LastErrors();
    DO(cudaMalloc(&synchronous, kMiB));
    DO(cudaMallocAsync(&ordered, kMiB, nullptr));
    DO(WorkFill(Address(ordered), kMiB, 2, nullptr));
    DO(WorkVerify(Address(ordered), kMiB, 2, nullptr));
    DO(cudaFreeAsync(ordered, nullptr));
    DO(cudaFree(synchronous));
    DO(cudaDeviceSynchronize());
    NOTE(WorkCorruptedBytes());
  }
}
