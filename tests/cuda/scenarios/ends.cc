// Ends: of streams, contexts, devices and of the process, with blocks that are still live.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/cuda/scenarios/scenario.h"

// The handle of a destroyed stream comes again; what was queued on it is not lost.
SCENARIO(end_of_a_stream_with_blocks_in_flight) {
  for (int i = 0; i < 30; ++i) {
    const CUstream stream = NewStream();
    const CUstream other = NewStream();
    CUdeviceptr kept = 0;
    CUdeviceptr freed = 0;
    cuMemAllocAsync(&kept, 2 * kMiB, stream);
    cuMemAllocAsync(&freed, 3 * kMiB, stream);
    WorkFill(kept, 2 * kMiB, i, stream);
    WorkFill(freed, 3 * kMiB, i + 1, stream);
    WorkVerify(freed, 3 * kMiB, i + 1, stream);
    cuMemFreeAsync(freed, stream);
    const CUevent done = NewEvent();
    cuEventRecord(done, stream);
    cuStreamDestroy(stream);
    CUdeviceptr next = 0;
    cuMemAllocAsync(&next, 3 * kMiB, other);
    WorkFill(next, 3 * kMiB, i + 2, other);
    WorkVerify(next, 3 * kMiB, i + 2, other);
    cuStreamWaitEvent(other, done, 0);
    WorkVerify(kept, 2 * kMiB, i, other);
    cuMemFreeAsync(kept, other);
    cuMemFreeAsync(next, other);
    cuStreamDestroy(other);
    cuEventDestroy(done);
  }
  CheckBytes();
  CheckInfo(0);
}

SCENARIO(end_of_a_stream_and_free_on_another) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(WorkFill(block, kMiB, 1, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamDestroy(stream));
  DO(WorkVerify(block, kMiB, 1, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuCtxSynchronize());  // which cuMemFree does not, for such a block
  DO(cuMemFree(block));
  CheckBytes();
}

// The next stream is another one, whoever has waited for it.
SCENARIO(end_of_a_stream_whose_work_goes_on) {
  for (int i = 0; i < 20; ++i) {
    const CUstream first = NewStream();
    CUdeviceptr block = 0;
    CUdeviceptr apart = 0;
    cuMemAllocAsync(&block, kMiB, first);
    cuMemAllocAsync(&apart, kMiB, first);
    for (int k = 0; k < 100; ++k) WorkFill(block, kMiB, k, first);
    cuMemFreeAsync(block, first);
    cuStreamDestroy(first);
    const CUstream second = NewStream();
    CUdeviceptr passing = 0;
    cuMemAllocAsync(&passing, 2 * kMiB, second);
    cuMemFreeAsync(passing, second);
    const CUstream third = NewStream();
    CUdeviceptr behind = 0;
    CUdeviceptr next = 0;
    cuMemAllocAsync(&behind, 2 * kMiB, third);
    cuMemAllocAsync(&next, kMiB, third);
    WorkFill(next, kMiB, 1000 + i, third);
    cuCtxSynchronize();
    WorkVerify(next, kMiB, 1000 + i, third);
    for (const CUdeviceptr each : {apart, behind, next}) cuMemFreeAsync(each, third);
    cuStreamDestroy(second);
    cuStreamDestroy(third);
  }
  CheckBytes();
  CheckInfo(0);
}

// 4 MiB filled from 1, whose stream has ended.
static CUdeviceptr FilledAndWithoutAStream() {
  const CUstream stream = NewStream();
  CUdeviceptr kept = 0;
  DO(cuMemAllocAsync(&kept, 4 * kMiB, stream));
  DO(WorkFill(kept, 4 * kMiB, 1, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamDestroy(stream));
  return kept;
}

// Whether the next block lies elsewhere than such a one, which goes with it.
static void ExpectApart(CUdeviceptr kept) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, 4 * kMiB, stream));
  DO(WorkFill(block, 4 * kMiB, 2, stream));
  DO(WorkVerify(kept, 4 * kMiB, 1, stream));
  DO(cuMemFreeAsync(kept, stream));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// A block belongs to the context that it was asked for in, and not to one whose stream came after its own.
SCENARIO(end_of_a_context_beside_a_block_without_a_stream) {
  const CUdeviceptr kept = FilledAndWithoutAStream();
  const CUcontext context = NewContext(0);
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuCtxDestroy(context));
  DO(cuCtxSetCurrent(MainContext()));
  ExpectApart(kept);
}

// The same where the other one ends, which is the primary one. One of the blocks has outlived its context, too.
SCENARIO(end_of_the_primary_context_beside_a_block_without_a_stream) {
  const CUcontext context = NewContext(0);
  const CUdeviceptr kept = FilledAndWithoutAStream();
  const CUcontext over = NewContext(0);
  const CUdeviceptr outlived = FilledAndWithoutAStream();
  DO(cuCtxDestroy(over));
  CUdeviceptr block = 0;
  DO(cuCtxSetCurrent(MainContext()));
  for (int i = 0; i < 3; ++i) {
    DO(cuMemAllocAsync(&block, kMiB, NewStream()));
  }
  DO(cuCtxSynchronize());
  DO(cuDevicePrimaryCtxReset(0));
  DO(cuCtxSetCurrent(context));
  ExpectApart(outlived);
  ExpectApart(kept);
  DO(cuCtxDestroy(context));
}

// Another thread goes on in a context of its own.
SCENARIO(end_of_a_context_beside_a_thread_that_trims) {
  std::atomic<bool> over{false};
  std::thread trims([&] {
    cuCtxSetCurrent(MainContext());
    while (!over) {
      cuMemPoolTrimTo(DefaultPool(0), 0);
      CUdeviceptr block = 0;
      const CUstream stream = NewStream();  // which makes the library look what is complete, too
      cuMemAllocAsync(&block, kMiB, stream);
      cuMemFreeAsync(block, stream);
      cuStreamDestroy(stream);
    }
  });
  for (int i = 0; i < kContexts; ++i) {
    const CUcontext context = NewContext(0);
    const CUstream captured = NewStream();
    CUstream streams[4] = {};
    CUdeviceptr blocks[4] = {};
    for (int k = 0; k < 4; ++k) {
      streams[k] = NewStream();
      cuMemAllocAsync(&blocks[k], kMiB, streams[k]);
      WorkFill(blocks[k], kMiB, k, streams[k]);
    }
    CUgraph graph = nullptr;
    // Of a free beside a capture nothing is known until somebody looks.
    if (i % 2 == 0) cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (int k = 0; k < 4; ++k) cuMemFreeAsync(blocks[k], streams[k]);
    if (i % 2 == 0) cuStreamEndCapture(captured, &graph);
    if (graph != nullptr) cuGraphDestroy(graph);
    cuCtxDestroy(context);
    cuCtxSetCurrent(MainContext());
  }
  over = true;
  trims.join();
  CheckBytes();
}

// A capture ends with its context: afterwards memory that is free can be had again.
SCENARIO_ALONE(end_of_a_context_that_is_capturing) {
  const size_t most = DeviceBytes() / 4 * 3;
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, most, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  const CUcontext context = NewContext(0);
  DO(cuStreamBeginCapture(NewStream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuCtxDestroy(context));
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemAllocAsync(&block, most, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamDestroy(stream));
}

// Memory of a context ends with it; other contexts go on.
SCENARIO(end_of_a_context) {
  CUdeviceptr ours = 0;
  DO(cuMemAllocAsync(&ours, kMiB, nullptr));
  DO(WorkFill(ours, kMiB, 1, nullptr));
  for (int i = 0; i < 3; ++i) {
    const CUcontext context = NewContext(0);
    const CUstream stream = NewStream();
    CUdeviceptr synchronous = 0;
    CUdeviceptr ordered = 0;
    DO(cuMemAlloc(&synchronous, kMiB));
    DO(cuMemAllocAsync(&ordered, kMiB, stream));
    DO(WorkFill(synchronous, kMiB, 3, stream));
    DO(WorkFill(ordered, kMiB, 2, stream));
    DO(WorkVerify(ordered, kMiB, 2, stream));
    DO(cuCtxSynchronize());
    DO(cuCtxDestroy(context));
    DO(cuCtxSetCurrent(MainContext()));
    DO(cuMemFree(synchronous));
    DO(cuMemFreeAsync(ordered, nullptr));  // pool memory is the device's, not the context's
    CheckInfo(kMiB);
  }
  DO(WorkVerify(ours, kMiB, 1, nullptr));
  DO(cuMemFreeAsync(ours, nullptr));
  CheckBytes();
}

// Blocks in stream order are the device's, and in use until they are freed.
SCENARIO(end_of_a_context_before_its_blocks_in_stream_order) {
  const CUcontext context = NewContext(0);
  CUdeviceptr kept[2] = {};
  for (int i : {0, 1}) {
    const CUstream stream = NewStream();
    DO(cuMemAllocAsync(&kept[i], 2 * kMiB, stream));
    DO(WorkFill(kept[i], 2 * kMiB, 1 + i, stream));
  }
  DO(cuCtxSynchronize());
  DO(cuCtxDestroy(context));
  DO(cuCtxSetCurrent(MainContext()));
  CheckInfo(4 * kMiB);
  CUcontext none = MainContext();
  DO(cuPointerGetAttribute(&none, CU_POINTER_ATTRIBUTE_CONTEXT, kept[1]));
  NOTE(none == nullptr);
  CUdeviceptr next[2] = {};
  for (int i : {0, 1}) {
    DO(cuMemAllocAsync(&next[i], 2 * kMiB, nullptr));
    DO(WorkFill(next[i], 2 * kMiB, 3 + i, nullptr));
  }
  for (int i : {0, 1}) {
    NOTE(next[i] == kept[0] || next[i] == kept[1]);
    DO(WorkVerify(kept[i], 2 * kMiB, 1 + i, nullptr));
    DO(cuMemFreeAsync(kept[i], nullptr));
    DO(WorkVerify(next[i], 2 * kMiB, 3 + i, nullptr));
    DO(cuMemFreeAsync(next[i], nullptr));
  }
  DO(cuCtxSynchronize());
  CheckBytes();
}

// Here too blocks in stream order are the device's.
SCENARIO(end_of_the_primary_context_by_reset) {
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr synchronous = 0;
    CUdeviceptr ordered = 0;
    DO(cuMemAlloc(&synchronous, kMiB));
    DO(cuMemAllocAsync(&ordered, kMiB, nullptr));
    DO(WorkFill(ordered, kMiB, 2, nullptr));
    DO(cuCtxSynchronize());
    DO(cuDevicePrimaryCtxReset(0));
    PrimaryContext(0);
    CheckInfo(kMiB);
    NOTE(PoolAttribute(DefaultPool(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    DO(cuMemFree(synchronous));
    DO(cuMemAlloc(&synchronous, kMiB));
    CUdeviceptr next = 0;
    DO(cuMemAllocAsync(&next, kMiB, nullptr));
    DO(WorkFill(next, kMiB, 3, nullptr));
    DO(WorkVerify(ordered, kMiB, 2, nullptr));
    DO(cuMemFreeAsync(ordered, nullptr));
    DO(WorkVerify(next, kMiB, 3, nullptr));
    DO(cuMemFreeAsync(next, nullptr));
    DO(cuMemFree(synchronous));
    CheckBytes();
  }
}

#ifndef __CUDACC__

// Nor has anybody memory of it then.
SCENARIO(end_of_the_primary_context_leaves_nothing) {
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, kMiB));
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuDevicePrimaryCtxReset(0));
  PrimaryContext(0);
  DO(cuCtxSynchronize());
  NOTE(simPhysicalBytes(0));
}

// Work that fails leaves its error in the context for good, and what is asked there answers with it: all but the end,
// after which another context serves the program.
static void EndAfterAnError(CUresult (*end)(CUcontext)) {
  CUcontext context = nullptr;
  DO(cuCtxGetCurrent(&context));
  CUstream streams[3] = {};
  CUdeviceptr blocks[3] = {};
  for (int i = 0; i < 3; ++i) {
    streams[i] = NewStream();
    DO(cuMemAllocAsync(&blocks[i], 4 * kMiB, streams[i]));
    DO(WorkFill(blocks[i], 4 * kMiB, i, streams[i]));
  }
  for (int i = 0; i < 3; ++i) DO(cuMemFreeAsync(blocks[i], streams[i]));
  CUdeviceptr synchronous = 0;
  DO(cuMemAlloc(&synchronous, kMiB));
  DO(WorkFill(kMiB, kMiB, 1, streams[0]));  // nobody has that address
  DO(cuCtxSynchronize());
  DO(end(context));
  PrimaryContext(0);
  DO(cuMemFree(synchronous));
  DO(cuMemPoolTrimTo(DefaultPool(0), 0));
  for (int i = 0; i < 3; ++i) {
    const CUstream stream = NewStream();
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, 4 * kMiB, stream));
    DO(WorkFill(block, 4 * kMiB, i, stream));
    DO(WorkVerify(block, 4 * kMiB, i, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
  }
  NOTE(simCorruptedBytes());
}

SCENARIO(end_of_a_context_after_an_error) {
  NewContext(0);
  EndAfterAnError(cuCtxDestroy);
}

SCENARIO(end_of_the_primary_context_after_an_error) {
  EndAfterAnError([](CUcontext) { return cuDevicePrimaryCtxReset(0); });
}

// The second time it is no context any more.
SCENARIO(end_of_a_context_twice) {
  CUdeviceptr block = 0;
  const CUcontext context = NewContext(0);
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuCtxDestroy(context));
  DO(cuCtxDestroy(context));
  DO(cuCtxSetCurrent(MainContext()));
}

#endif

// Only what the context had ends with it, and no less.
SCENARIO(end_of_a_context_beside_blocks_of_others) {
  CUdeviceptr kept = 0;
  CUdeviceptr gone = 0;
  CUdeviceptr later = 0;
  DO(cuMemAlloc(&kept, kMiB));
  for (const int device : {0, 1}) {
    if (device == 1 && !TwoDevices()) break;
    const CUcontext context = NewContext(device);
    DO(cuMemAlloc(&gone, kMiB));
    DO(cuCtxDestroy(context));
    DO(cuCtxSetCurrent(MainContext()));
  }
  DO(cuMemAlloc(&later, 2 * kMiB));
  DO(cuMemFree(later));
  DO(cuMemFree(kept));
}

// Where the driver refuses (it is told to fail by the test), all that was live still is.
SCENARIO(end_of_the_primary_context_that_is_refused) {
  const CUstream stream = NewStream();
  CUdeviceptr kept = 0;
  CUdeviceptr next = 0;
  DO(cuMemAllocAsync(&kept, 4 * kMiB, stream));
  DO(WorkFill(kept, 4 * kMiB, 1, stream));
  DO(cuStreamSynchronize(stream));
  if (DO(cuDevicePrimaryCtxReset(0)) == CUDA_SUCCESS) return;
  DO(cuMemAllocAsync(&next, 4 * kMiB, stream));
  DO(WorkFill(next, 4 * kMiB, 2, stream));
  DO(WorkVerify(kept, 4 * kMiB, 1, stream));
  DO(cuMemFreeAsync(kept, stream));
  DO(cuMemFreeAsync(next, stream));
  CheckBytes();
  CheckInfo(0);
  DO(cuStreamDestroy(stream));
}

SCENARIO(end_of_the_primary_context_between_trainings) {
  Train({NewStream(), /*synchronous=*/false, 60});
  DO(cuDevicePrimaryCtxReset(0));
  PrimaryContext(0);
  Train({NewStream(), /*synchronous=*/false, 60});
  CheckBytes();
}

// What was served in another context is that one's, wherever it lies.
SCENARIO(end_of_the_primary_context_beside_another) {
  Train({NewStream(), /*synchronous=*/false, 60});
  NewContext(0);
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, 3 * kMiB, stream));
  DO(WorkFill(block, 3 * kMiB, 7, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuDevicePrimaryCtxReset(0));
  DO(WorkVerify(block, 3 * kMiB, 7, stream));
  DO(cuStreamSynchronize(stream));
  NOTE(WorkCorruptedBytes());
  DO(cuMemFreeAsync(block, stream));
}

// Memory that lies in one context outlives the end of another.
SCENARIO(end_of_another_context_than_the_one_that_trained) {
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/false, 60});
  CUdeviceptr kept = 0;
  DO(cuMemAllocAsync(&kept, 64 * kKiB, stream));
  DO(WorkFill(kept, 64 * kKiB, 5, stream));
  const CUcontext other = NewContext(0);
  DO(cuStreamDestroy(NewStream()));
  DO(cuCtxDestroy(other));
  DO(cuCtxSetCurrent(MainContext()));
  DO(WorkVerify(kept, 64 * kKiB, 5, stream));
  DO(cuMemFreeAsync(kept, stream));
  DO(cuStreamSynchronize(stream));
  CheckBytes();
}

// Memory that is gone with its context is free, but once.
SCENARIO_ALONE(end_of_the_context_that_trained) {
  const size_t most = DeviceBytes() / 16 * 15;
  const CUcontext context = NewContext(0);
  Train({NewStream(), /*synchronous=*/false, 60});
  DO(cuCtxSynchronize());
  DO(cuCtxDestroy(context));
  DO(cuCtxSetCurrent(MainContext()));
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, most));
  CheckInfo(most);
  DO(cuMemFree(block));
}

SCENARIO(end_of_the_primary_context_by_release) {
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, kMiB));
  DO(cuCtxSetCurrent(nullptr));
  DO(cuDevicePrimaryCtxRelease(0));
  // What is current does not matter, and whether it has ended yet is the runtime's affair: where a kernel was launched
  // it holds the context, too.
  DO(cuMemFree(block));
  DO(cuMemAlloc(&block, kMiB));  // no context is current
  PrimaryContext(0);
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(WorkFill(block, kMiB, 3, nullptr));
  DO(WorkVerify(block, kMiB, 3, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  CheckBytes();
}

// What was freed there behind work that was still to be done is used again in the next.
SCENARIO(end_of_the_primary_context_with_frees_under_way) {
  const CUstream streams[] = {NewStream(), NewStream()};
  const auto use = [](CUstream stream, size_t bytes, size_t seed) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, bytes, stream));
    DO(WorkFill(block, bytes, seed, stream));
    DO(WorkVerify(block, bytes, seed, stream));
    DO(cuMemFreeAsync(block, stream));
  };
  for (size_t i = 0; i < 4; ++i) use(streams[i % 2], 4 * kMiB, i);
  DO(cuDevicePrimaryCtxRelease(0));
  PrimaryContext(0);
  const CUstream stream = NewStream();
  for (size_t i = 1; i <= 4; ++i) use(stream, i * 4 * kMiB, 10 + i);
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

SCENARIO(end_of_the_primary_context_that_is_capturing) {
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuStreamBeginCapture(NewStream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuDevicePrimaryCtxRelease(0));
  PrimaryContext(0);
  const CUstream stream = NewStream();
  Train({stream, /*synchronous=*/false, 60});
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Another still holds it: nothing has ended.
SCENARIO(end_of_the_primary_context_for_one_of_two) {
  CUcontext context = nullptr;
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  CUdeviceptr kept = 0;
  CUdeviceptr next = 0;
  DO(cuMemAllocAsync(&kept, kMiB, nullptr));
  DO(WorkFill(kept, kMiB, 3, nullptr));
  DO(cuDevicePrimaryCtxRelease(0));
  DO(cuMemAllocAsync(&next, kMiB, nullptr));
  DO(WorkFill(next, kMiB, 4, nullptr));
  DO(WorkVerify(kept, kMiB, 3, nullptr));
  DO(cuMemFreeAsync(next, nullptr));
  DO(cuMemFreeAsync(kept, nullptr));
  CheckBytes();
  CheckInfo(0);
}

SCENARIO(end_of_the_process_with_live_blocks) {
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, kMiB));
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(WorkFill(block, kMiB, 3, nullptr));
}

namespace {

// A static object of a library frees late: after the preload library's own destructors.
struct LateFree {
  CUdeviceptr synchronous = 0;
  CUdeviceptr ordered = 0;
  ~LateFree() {
    if (ordered == 0) return;
    const int first = cuMemFreeAsync(ordered, nullptr);
    const int second = cuMemFree(synchronous);
    std::printf("late: %d %d\n", first == 0 || first == CUDA_ERROR_DEINITIALIZED,
                second == 0 || second == CUDA_ERROR_DEINITIALIZED);
  }
};
LateFree late;
CUdeviceptr at_exit;

}  // namespace

SCENARIO(end_of_the_process_before_late_frees) {
  DO(cuMemAlloc(&late.synchronous, kMiB));
  DO(cuMemAllocAsync(&late.ordered, kMiB, nullptr));
  DO(cuMemAllocAsync(&at_exit, kMiB, nullptr));
  std::atexit([] {
    const int result = cuMemFreeAsync(at_exit, nullptr);
    std::printf("at exit: %d\n", result == 0 || result == CUDA_ERROR_DEINITIALIZED);
  });
}

// CUDA does not work in the child of a fork; the child must end, and the parent must go on.
SCENARIO(fork_while_blocks_are_live) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(WorkFill(block, kMiB, 3, stream));
  DO(cuStreamSynchronize(stream));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* volatile memory = std::malloc(1 << 20);
    std::free(memory);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  NOTE(WEXITSTATUS(status));
  const pid_t exiting = fork();
  if (exiting == 0) std::exit(8);  // with its destructors
  waitpid(exiting, &status, 0);
  NOTE(WIFEXITED(status));
  DO(WorkVerify(block, kMiB, 3, stream));
  DO(cuMemFreeAsync(block, stream));
  Train({stream, /*synchronous=*/false, 20});
  CheckBytes();
  DO(cuStreamDestroy(stream));
}
