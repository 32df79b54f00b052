// Work on device memory whose result can be checked: a stream fills a range with a pattern, and later
// verifies it. On the simulated device these are its own "kernels", elsewhere real ones, so that programs
// have one source.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

namespace device_work {

__device__ inline unsigned char PatternByte(unsigned long long seed, size_t i) {
  return static_cast<unsigned char>(((seed + i / 8) * 0x9E3779B97F4A7C15ull) >> (8 * (i % 8)));
}

__device__ unsigned long long corrupted_bytes = 0;

__global__ void FillKernel(unsigned char* bytes, size_t count, unsigned long long seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    bytes[i] = PatternByte(seed, i);
  }
}

__global__ void VerifyKernel(const unsigned char* bytes, size_t count, unsigned long long seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    if (bytes[i] != PatternByte(seed, i)) atomicAdd(&corrupted_bytes, 1ull);
  }
}

inline CUresult Launched() {
  return cudaPeekAtLastError() == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace device_work

inline CUresult WorkFill(CUdeviceptr at, size_t bytes, uint64_t seed, CUstream stream) {
  device_work::FillKernel<<<64, 256, 0, stream>>>(reinterpret_cast<unsigned char*>(at), bytes, seed);
  return device_work::Launched();
}

inline CUresult WorkVerify(CUdeviceptr at, size_t bytes, uint64_t seed, CUstream stream) {
  device_work::VerifyKernel<<<64, 256, 0, stream>>>(reinterpret_cast<unsigned char*>(at), bytes, seed);
  return device_work::Launched();
}

// Of the current device, so far; what has been queued must be over.
inline uint64_t WorkCorruptedBytes() {
  unsigned long long found = 0;
  cudaMemcpyFromSymbol(&found, device_work::corrupted_bytes, sizeof found);
  return found;
}

#else

#include "simcuda.h"

inline CUresult WorkFill(CUdeviceptr at, size_t bytes, uint64_t seed, CUstream stream) {
  return simFill(at, bytes, seed, stream);
}

inline CUresult WorkVerify(CUdeviceptr at, size_t bytes, uint64_t seed, CUstream stream) {
  return simVerify(at, bytes, seed, stream);
}

inline uint64_t WorkCorruptedBytes() { return simCorruptedBytes() + simIllegalAccesses(); }

#endif

// The pieces of a block that are worth filling: a large one is told by its ends and its middle.
template <typename Work>  // CUresult(CUdeviceptr, size_t bytes, uint64_t seed)
CUresult OnPieces(CUdeviceptr block, size_t bytes, uint64_t seed, Work work) {
  constexpr size_t kPiece = 4096;
  if (bytes <= 8 * kPiece) return work(block, bytes, seed);
  CUresult result = CUDA_SUCCESS;
  for (const size_t at : {size_t{0}, bytes / 2 / kPiece * kPiece, bytes - kPiece}) {
    const CUresult piece = work(block + at, kPiece, seed + at);
    if (piece != CUDA_SUCCESS) result = piece;
  }
  return result;
}

inline CUresult FillPieces(CUdeviceptr block, size_t bytes, uint64_t seed, CUstream stream) {
  return OnPieces(block, bytes, seed,
                  [=](CUdeviceptr at, size_t count, uint64_t s) { return WorkFill(at, count, s, stream); });
}

inline CUresult VerifyPieces(CUdeviceptr block, size_t bytes, uint64_t seed, CUstream stream) {
  return OnPieces(block, bytes, seed,
                  [=](CUdeviceptr at, size_t count, uint64_t s) { return WorkVerify(at, count, s, stream); });
}
