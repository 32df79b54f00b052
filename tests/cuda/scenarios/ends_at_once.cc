// Ends beside other threads, who may be given what has just ended under the same handle.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/cuda/scenarios/scenario.h"

namespace {

// Results of calls in several threads, of which only that all went well is printed.
class Checked {
 public:
  void operator()(CUresult result) { failed_ += result != CUDA_SUCCESS; }
  ~Checked() { Note("failed", failed_); }

 private:
  std::atomic<int> failed_{0};
};

// Contexts on device 0 until one has this handle, or it will not come.
std::vector<CUcontext> ContextsUpTo(CUcontext handle, const std::atomic<bool>& over) {
  std::vector<CUcontext> made;
  do {
    if (!made.empty()) {
      CUcontext popped = nullptr;
      cuCtxPopCurrent(&popped);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    made.push_back(NewContext(0));
  } while (made.back() != handle && !over);
  return made;
}

// Something of each kind is used in the current context from before to after `over`.
void UseMemoryMeanwhile(const std::atomic<bool>& over, Checked& check) {
  const CUstream first = NewStream();
  const CUstream second = NewStream();
  CUdeviceptr live = 0;
  CUdeviceptr freed = 0;
  check(cuMemAlloc(&live, 2 * kMiB));
  check(WorkFill(live, 2 * kMiB, 1, first));
  check(cuMemAllocAsync(&freed, 2 * kMiB, first));
  for (int k = 0; k < 50; ++k) check(WorkFill(freed, 64 * kKiB, k, first));
  check(cuMemFreeAsync(freed, first));
  while (!over) std::this_thread::yield();
  CUdeviceptr apart = 0;
  CUdeviceptr next = 0;
  check(cuMemAlloc(&apart, 2 * kMiB));
  check(WorkFill(apart, 2 * kMiB, 2, second));
  check(cuMemAllocAsync(&next, 2 * kMiB, second));
  check(WorkFill(next, 2 * kMiB, 3, second));
  check(cuStreamSynchronize(second));
  check(cuStreamSynchronize(first));
  check(WorkVerify(live, 2 * kMiB, 1, second));
  check(WorkVerify(next, 2 * kMiB, 3, second));
  check(cuMemFreeAsync(next, second));
  check(cuMemFree(live));
  check(cuMemFree(apart));
}

// Meanwhile another thread makes contexts, of which one may be given the same handle.
template <typename Ends>
void EndBesideNewContexts(CUcontext context, Checked& check, Ends ends) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    const std::vector<CUcontext> made = ContextsUpTo(context, over);
    UseMemoryMeanwhile(over, check);
    for (const CUcontext each : made) check(cuCtxDestroy(each));
  });
  check(ends());
  over = true;
  other.join();
}

// A block of each kind, one in stream order freed.
void LeaveMemory(Checked& check) {
  CUdeviceptr block = 0;
  check(cuMemAllocAsync(&block, kMiB, nullptr));
  check(cuMemFreeAsync(block, nullptr));
  check(cuMemAlloc(&block, kMiB));
}

}  // namespace

SCENARIO(end_of_a_context_whose_handle_comes_again) {
  Checked check;
  for (int i = 0; i < kContexts; ++i) {
    const CUcontext context = NewContext(0);
    LeaveMemory(check);
    check(cuCtxSetCurrent(MainContext()));
    EndBesideNewContexts(context, check, [&] { return cuCtxDestroy(context); });
  }
  CheckBytes();
}

SCENARIO(end_of_the_primary_context_whose_handle_comes_again) {
  Checked check;
  for (int i = 0; i < kContexts; ++i) {
    CUcontext context = nullptr;
    check(cuCtxGetCurrent(&context));
    LeaveMemory(check);
    check(cuCtxSetCurrent(nullptr));
    EndBesideNewContexts(context, check, [] { return cuDevicePrimaryCtxRelease(0); });
    PrimaryContext(0);
  }
  CheckBytes();
}

namespace {

// Meanwhile another thread, in another context or none, frees blocks of the one that ends: they are there, or not.
template <typename Ends>
void EndBesideFrees(CUcontext current, Checked& check, Ends ends) {
  CUdeviceptr blocks[16] = {};
  for (CUdeviceptr& block : blocks) check(cuMemAlloc(&block, kMiB));
  check(cuCtxSetCurrent(current));
  std::atomic<bool> goes_on{false};
  std::thread other([&] {
    while (!goes_on) std::this_thread::yield();
    for (const CUdeviceptr block : blocks) {
      const CUresult freed = cuMemFree(block);
      if (freed != CUDA_ERROR_INVALID_VALUE) check(freed);
    }
  });
  goes_on = true;
  std::this_thread::sleep_for(std::chrono::microseconds(500));
  check(ends());
  other.join();
}

}  // namespace

#ifndef __CUDACC__  // there a handle does not come again at will, and frees may not end, or find nothing to end

SCENARIO(end_of_a_context_beside_a_thread_that_frees) {
  Checked check;
  for (int i = 0; i < kContexts; ++i) {
    const CUcontext context = NewContext(0);
    EndBesideFrees(MainContext(), check, [&] { return cuCtxDestroy(context); });
  }
  CheckBytes();
}

SCENARIO(end_of_the_primary_context_beside_a_thread_that_frees) {
  Checked check;
  for (int i = 0; i < 2 * kContexts; ++i) {
    const bool resets = i % 2 == 0;
    EndBesideFrees(nullptr, check,
                   [&] { return resets ? cuDevicePrimaryCtxReset(0) : cuDevicePrimaryCtxRelease(0); });
    if (resets) check(cuDevicePrimaryCtxRelease(0));
    PrimaryContext(0);
  }
  CheckBytes();
}

// A release that is not the last ends nothing: the blocks are there, whoever frees them meanwhile.
SCENARIO(end_of_the_primary_context_for_one_of_two_beside_a_thread_that_frees) {
  Checked check;
  for (int i = 0; i < kContexts; ++i) {
    PrimaryContext(0);
    EndBesideFrees(nullptr, check, [] { return cuDevicePrimaryCtxRelease(0); });
    check(cuCtxSetCurrent(MainContext()));
  }
  CheckBytes();
  CheckInfo(0);
}

// The next stream of a handle may be captured before the call has come back that destroyed the last.
SCENARIO(end_of_a_stream_whose_handle_is_captured_at_once) {
  Checked check;
  for (int i = 0; i < 20; ++i) {
    const CUstream stream = NewStream();
    CUdeviceptr block = 0;
    CUdeviceptr passing = 0;
    check(cuMemAlloc(&block, kMiB));
    check(cuMemAllocAsync(&passing, kMiB, stream));
    check(cuMemFreeAsync(passing, stream));
    check(cuStreamSynchronize(stream));
    std::atomic<bool> over{false};
    std::atomic<bool> captures{false};
    std::atomic<bool> freed{false};
    std::thread other([&] {
      check(cuCtxSetCurrent(MainContext()));
      std::vector<CUstream> made;
      do {
        made.push_back(NewStream());
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      } while (made.back() != stream && !over);
      check(cuStreamBeginCapture(made.back(), CU_STREAM_CAPTURE_MODE_RELAXED));
      captures = true;
      while (!freed) std::this_thread::yield();
      CUgraph graph = nullptr;
      check(cuStreamEndCapture(made.back(), &graph));
      if (graph != nullptr) check(cuGraphDestroy(graph));
      for (const CUstream each : made) check(cuStreamDestroy(each));
    });
    check(cuStreamDestroy(stream));
    over = true;
    while (!captures) std::this_thread::yield();
    check(cuMemFree(block));
    freed = true;
    other.join();
  }
}

#endif
