// The end of the primary context beside another thread.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/cuda/scenarios/scenario.h"

namespace {

// Bytes without a kernel: whoever launches one makes the runtime hold the primary context, which does not end then
// when the program releases it.
CUresult SetBytes(CUdeviceptr block, size_t bytes, size_t seed, CUstream stream) {
  return cuMemsetD8Async(block, static_cast<unsigned char>(seed), bytes, stream);
}

// How many are not the ones that were set.
int64_t WrongBytes(CUdeviceptr block, size_t bytes, size_t seed) {
  std::vector<unsigned char> found(bytes);
  if (cuMemcpyDtoH(found.data(), block, bytes) != CUDA_SUCCESS) return -1;
  const auto right = static_cast<unsigned char>(seed);
  return std::count_if(found.begin(), found.end(), [=](unsigned char byte) { return byte != right; });
}

// False: it has not ended after a while, so somebody else holds it.
bool AwaitEndOfPrimary() {
  const auto begin = std::chrono::steady_clock::now();
  unsigned flags = 0;
  int active = 1;
  while (cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active != 0) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) return false;
  }
  return active == 0;
}

}  // namespace

// A thread begins the context anew as soon as another has ended it: what was taken in the old one in stream order is
// still the program's, and nothing else is in its place.
SCENARIO(end_of_the_primary_context_that_begins_at_once) {
  DO(cuCtxSetCurrent(nullptr));
  DO(cuDevicePrimaryCtxRelease(0));
  constexpr size_t kBytes = 64 * kKiB;
  int failed = 0;
  int wrong = 0;
  int outlived_wrong = 0;
  uint64_t used_at_first = 0;
  const auto check = [&](CUresult result) { failed += result != CUDA_SUCCESS; };
  const auto retain = [&] {
    CUcontext context = nullptr;
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
  };
  const auto take = [&](int seed) {
    CUdeviceptr block = 0;
    check(cuMemAllocAsync(&block, kBytes, nullptr));
    check(SetBytes(block, kBytes, seed, nullptr));
    return block;
  };
  for (int i = 0; i < kContexts; ++i) {
    retain();
    const CUdeviceptr outlives = take(2 * i + 1);
    check(cuCtxSynchronize());
    check(cuCtxSetCurrent(nullptr));
    std::thread ends([] { cuDevicePrimaryCtxRelease(0); });
    failed += !AwaitEndOfPrimary();
    retain();
    const CUdeviceptr block = take(2 * i + 2);
    ends.join();
    uint64_t used = 0;
    check(cuMemPoolGetAttribute(DefaultPool(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    if (i == 0) used_at_first = used;
    wrong += used != used_at_first || WrongBytes(block, kBytes, 2 * i + 2) != 0;
    outlived_wrong += WrongBytes(outlives, kBytes, 2 * i + 1) != 0;
    check(cuMemFreeAsync(outlives, nullptr));
    check(cuMemFreeAsync(block, nullptr));
    check(cuCtxSynchronize());
    check(cuCtxSetCurrent(nullptr));
    check(cuDevicePrimaryCtxRelease(0));
    if (failed != 0 || wrong != 0 || outlived_wrong != 0) break;
  }
  NOTE(failed);
  NOTE(wrong);
  NOTE(used_at_first);
  NOTE(outlived_wrong);
}

// Each release may be the last, and none is: another thread uses memory meanwhile.
SCENARIO(release_of_the_primary_context_beside_a_thread_that_allocates) {
  constexpr size_t kBytes = 64 * kKiB;
  CUcontext primary = PrimaryContext(0);
  int failed = 0;
  std::atomic<bool> over{false};
  std::thread allocates([&] {
    const auto check = [&](CUresult result) { failed += result != CUDA_SUCCESS; };
    check(cuCtxSetCurrent(primary));
    while (!over) {
      CUdeviceptr block = 0;
      CUdeviceptr synchronous = 0;
      check(cuMemAllocAsync(&block, kBytes, nullptr));
      check(cuMemAlloc(&synchronous, kBytes));
      check(cuMemFreeAsync(block, nullptr));
      check(cuMemFree(synchronous));
    }
  });
  int not_released = 0;
  for (int i = 0; i < 50; ++i) {
    not_released += cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS;
    PrimaryContext(0);
  }
  over = true;
  allocates.join();
  NOTE(failed);
  NOTE(not_released);
}

// While one thread ends it, another is given the handles of its streams, for streams of another context: what is
// asked for on these is theirs, and what is freed there has its last use there.
SCENARIO(end_of_the_primary_context_beside_new_streams) {
  constexpr size_t kBytes = 64 * kKiB;
  const CUcontext own = NewContext(0);
  DO(cuDevicePrimaryCtxRelease(0));
  int failed = 0;
  int wrong = 0;
  const auto check = [&](CUresult result) { failed += result != CUDA_SUCCESS; };
  for (int i = 0; i < kContexts; ++i) {
    PrimaryContext(0);
    CUdeviceptr blocks[40] = {};
    CUstream streams[std::size(blocks)] = {};
    for (size_t k = 0; k < std::size(blocks); ++k) {
      streams[k] = NewStream();
      check(cuMemAllocAsync(&blocks[k], kBytes, streams[k]));
      if (k % 2 == 0) check(cuMemFreeAsync(blocks[k], streams[k]));
    }
    check(cuCtxSetCurrent(own));
    std::thread ends([] { cuDevicePrimaryCtxRelease(0); });
    failed += !AwaitEndOfPrimary();
    for (size_t k = 0; k < std::size(blocks); ++k) {
      streams[k] = NewStream();
      check(cuMemAllocAsync(&blocks[k], kBytes, streams[k]));
      CUdeviceptr passing = 0;
      check(cuMemAllocAsync(&passing, kBytes, streams[k]));
      check(SetBytes(passing, kBytes, 40 * i + k + 1, streams[k]));
      check(cuMemcpyDtoDAsync(blocks[k], passing, kBytes, streams[k]));
      check(cuMemFreeAsync(passing, streams[k]));
    }
    ends.join();
    CUdeviceptr next[std::size(blocks)] = {};
    for (CUdeviceptr& each : next) {
      check(cuMemAllocAsync(&each, kBytes, nullptr));
      check(SetBytes(each, kBytes, 0, nullptr));
    }
    check(cuCtxSynchronize());
    for (size_t k = 0; k < std::size(blocks); ++k) {
      wrong += WrongBytes(blocks[k], kBytes, 40 * i + k + 1) != 0;
      check(cuMemFreeAsync(blocks[k], streams[k]));
      check(cuMemFreeAsync(next[k], nullptr));
      check(cuStreamDestroy(streams[k]));
    }
    if (failed != 0 || wrong != 0) break;
  }
  NOTE(failed);
  NOTE(wrong);
  CheckInfo(0);
}

#if CUDA_VERSION >= 12050

// A part of a device's primary context, whose end only its own call tells of. What has been freed on its streams stays free.
SCENARIO(end_of_a_green_context) {
  CUdevResource resource;
  CUdevResourceDesc all = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUstream apart = nullptr;
  const CUstream stream = NewStream();
  DO(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  DO(cuDevResourceGenerateDesc(&all, &resource, 1));
  DO(cuGreenCtxCreate(&green, all, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  DO(cuGreenCtxStreamCreate(&apart, green, CU_STREAM_NON_BLOCKING, 0));
  DO(cuCtxFromGreenCtx(&context, green));
  CUdeviceptr block = 0;
  CUgraph nothing =
      nullptr;  // while it is captured, the green one's default stream is met for the first time
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuCtxSetCurrent(context));
  DO(cuMemAllocAsync(&block, 4 * kMiB, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuStreamEndCapture(stream, &nothing));
  DO(cuGraphDestroy(nothing));
  for (const CUcontext current : {MainContext(), context}) {
    DO(cuCtxSetCurrent(current));
    for (const CUstream each : {stream, apart, CUstream{}}) {
      DO(cuMemAllocAsync(&block, 4 * kMiB, each));
      DO(WorkFill(block, 4 * kMiB, 1, each));
      DO(WorkVerify(block, 4 * kMiB, 1, each));
      DO(cuMemFreeAsync(block, each));
    }
    DO(cuMemAlloc(&block, 2 * kMiB));
    DO(WorkFill(block, 2 * kMiB, 2, nullptr));
    DO(WorkVerify(block, 2 * kMiB, 2, nullptr));
    DO(cuMemFree(block));
  }
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemAllocAsync(&block, 4 * kMiB, stream));  // freed on a stream of the green one
  DO(WorkFill(block, 4 * kMiB, 3, stream));
  DO(cuStreamSynchronize(stream));
  DO(WorkVerify(block, 4 * kMiB, 3, apart));
  DO(cuMemFreeAsync(block, apart));
  DO(cuStreamSynchronize(apart));
  DO(cuStreamDestroy(apart));
  DO(cuCtxSetCurrent(context));
  DO(cuMemAllocAsync(&block, 20 * kMiB, nullptr));
  DO(WorkFill(block, 20 * kMiB, 4, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuCtxSynchronize());
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuGreenCtxDestroy(green));
  DO(cuMemPoolTrimTo(DefaultPool(0), 0));
  for (size_t i = 1; i <= 4; ++i) {
    DO(cuMemAllocAsync(&block, i * 8 * kMiB, stream));
    DO(WorkFill(block, i * 8 * kMiB, 10 + i, stream));
    DO(WorkVerify(block, i * 8 * kMiB, 10 + i, stream));
    DO(cuMemFreeAsync(block, stream));
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

#endif
