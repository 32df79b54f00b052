// What threads have of their own: the context that is current, or none, and a default stream. And a device that waits for
// one.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tests/cuda/scenarios/scenario.h"

// NCCL's and data loaders' threads have no current context.
SCENARIO(thread_without_a_context) {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = DefaultPool(0);
  CUdeviceptr main_block = 0;
  DO(cuMemAllocAsync(&main_block, kMiB, stream));
  std::thread([&] {
    CUdeviceptr block = 0;
    size_t unused = 0;
    size_t total = 0;
    DO(cuMemAllocAsync(&block, kMiB, nullptr));
    DO(cuMemAlloc(&block, kMiB));
    DO(cuMemGetInfo(&unused, &total));
    DO(cuMemAllocAsync(&block, kMiB, stream));
    if (block != 0) DO(cuMemFreeAsync(block, stream));
    block = 0;
    DO(cuMemAllocFromPoolAsync(&block, kMiB, pool, stream));
    if (block != 0) DO(cuMemFreeAsync(block, stream));
    DO(cuMemFreeAsync(main_block, stream));
    CUcontext current = MainContext();
    DO(cuCtxGetCurrent(&current));
    NOTE(current == nullptr);
    DO(cuMemAllocAsync(&block, kMiB, stream));
    DO(WorkFill(block, kMiB, 1, stream));  // by the runtime, which may make its context current
    DO(WorkVerify(block, kMiB, 1, stream));
    DO(cuMemFreeAsync(block, stream));
  }).join();
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

SCENARIO(threads_on_their_own_default_streams) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      cuCtxSetCurrent(MainContext());
      Train({CU_STREAM_PER_THREAD, /*synchronous=*/false, 20 + i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CheckBytes();
  CheckInfo(0);
}

namespace {

// A block that goes when its thread ends, in the order of the thread's own default stream.
struct Held {
  CUdeviceptr block = 0;
  CUstream other = nullptr;
  std::atomic<bool>* ending = nullptr;
  ~Held() {
    *ending = true;
    while (*ending) std::this_thread::yield();
    unsigned flags = 0;
    std::fprintf(stderr, "the stream has come\n");  // how far it comes where it does not end
    cuStreamGetFlags(other, &flags);                // where it is slow, the stream that comes is first
    std::fprintf(stderr, "cuMemFreeAsync: %d\n", cuMemFreeAsync(block, CU_STREAM_PER_THREAD));
  }
};

}  // namespace

// A stream comes while a thread ends that still frees: it is not taken for the thread's.
SCENARIO(threads_that_free_at_their_end) {
  for (int i = 0; i < 20; ++i) {
    CUdeviceptr block = 0;
    const CUstream busy = NewStream();  // with a free that is not over, which takes time to look at
    cuMemAllocAsync(&block, kMiB, busy);
    WorkFill(block, kMiB, i, busy);
    cuMemFreeAsync(block, busy);
    std::atomic<bool> ending{false};
    std::thread ends([&] {
      thread_local Held held;
      held.other = busy;
      held.ending = &ending;
      cuCtxSetCurrent(MainContext());
      cuMemAllocAsync(&held.block, 256 * kKiB, CU_STREAM_PER_THREAD);
      for (int k = 0; k < 100; ++k) WorkFill(held.block, 256 * kKiB, k, CU_STREAM_PER_THREAD);
    });
    while (!ending) std::this_thread::yield();
    std::fprintf(stderr, "round %d: the thread ends\n", i);
    const CUstream stream = NewStream();
    CUdeviceptr passing = 0;
    ending = false;
    cuMemAllocAsync(&passing, 4 * kKiB, stream);
    ends.join();
    std::fprintf(stderr, "and has ended\n");
    cuMemAllocAsync(&block, 256 * kKiB, stream);
    WorkFill(block, 256 * kKiB, 1000 + i, stream);
    cuStreamSynchronize(stream);
    cuCtxSynchronize();
    WorkVerify(block, 256 * kKiB, 1000 + i, stream);
    for (const CUdeviceptr each : {passing, block}) cuMemFreeAsync(each, stream);
    cuStreamDestroy(stream);
    cuStreamDestroy(busy);
  }
  CheckBytes();
  CheckInfo(0);
}

#ifdef __CUDACC__  // what is to run on the host is run by the caller on the simulated device

// What is queued goes on once the thread has come to a later line: an allocation before that may not wait for it for ever.
SCENARIO(device_that_waits_for_the_thread_that_allocates) {
  const CUstream stream = NewStream();
  std::promise<void> go;
  std::future<void> gone = go.get_future();
  CUdeviceptr first = 0;
  CUdeviceptr between = 0;
  CUdeviceptr next = 0;
  DO(cuMemAllocAsync(&first, 16 * kMiB, stream));
  DO(cuMemAllocAsync(&between, 2 * kMiB, stream));
  DO(WorkFill(first, 16 * kMiB, 1, stream));
  const auto wait = [](void* until) { static_cast<std::future<void>*>(until)->wait(); };
  DO(cuLaunchHostFunc(stream, wait, &gone));
  DO(WorkVerify(first, 16 * kMiB, 1, stream));
  DO(cuMemFreeAsync(first, stream));
  DO(cuMemAllocAsync(&next, 32 * kMiB, stream));
  go.set_value();
  DO(WorkFill(next, 32 * kMiB, 2, stream));
  DO(WorkVerify(next, 32 * kMiB, 2, stream));
  DO(cuMemFreeAsync(between, stream));
  DO(cuMemFreeAsync(next, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

#endif
