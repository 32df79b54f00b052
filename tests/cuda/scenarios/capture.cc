// Stream capture. What is allocated in a capture belongs to the graph, and a capture notices every call that
// is not allowed in it: the driver must be asked exactly what it would be asked without us.
#include <dlfcn.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/cuda/scenarios/scenario.h"

namespace {

constexpr size_t kBytes = 2 * kMiB;

void NoteCapturing(CUstream captured) {
  CUstreamCaptureStatus status{};
  DO(cuStreamIsCapturing(captured, &status));
  NOTE(status);
}

// Ends the capture, and runs what was captured twice.
void Finish(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  if (DO(cuStreamEndCapture(stream, &graph)) != 0) return;
  size_t nodes = 0;
  DO(cuGraphGetNodes(graph, nullptr, &nodes));
  NOTE(nodes);
  if (DO(cuGraphInstantiate(&executable, graph, 0)) == 0) {
    DO(cuGraphLaunch(executable, stream));
    DO(cuGraphLaunch(executable, stream));
    CheckBytes();
    DO(cuGraphExecDestroy(executable));
  }
  DO(cuGraphDestroy(graph));
}

void InsideAndOutside(CUstreamCaptureMode mode) {
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  const CUstream busy =
      NewStream();  // with a free that is not over, and that nobody may ask about in a capture
  CUdeviceptr passing = 0;
  CUdeviceptr before = 0;
  CUdeviceptr inside = 0;
  CUdeviceptr beside = 0;
  CUdeviceptr synchronous = 0;
  DO(cuMemAllocAsync(&passing, 64 * kKiB, busy));
  for (int i = 0; i < 100; ++i) WorkFill(passing, 64 * kKiB, i, busy);
  DO(cuMemFreeAsync(passing, busy));
  DO(cuMemAllocAsync(&before, kBytes, captured));
  DO(WorkFill(before, kBytes, 1, captured));
  DO(cuStreamSynchronize(captured));
  DO(cuStreamBeginCapture(captured, mode));
  DO(cuMemAllocAsync(&inside, kBytes, captured));
  DO(WorkFill(inside, kBytes, 2, captured));
  DO(WorkVerify(before, kBytes, 1, captured));
  DO(WorkVerify(inside, kBytes, 2, captured));
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    DO(cuMemAllocAsync(&beside, kBytes, other));  // not captured
    DO(WorkFill(beside, kBytes, 3, other));
    DO(WorkVerify(beside, kBytes, 3, other));
    DO(cuMemFreeAsync(beside, other));
  }
  DO(cuMemFreeAsync(inside, captured));
  // Too large: nobody may wait for the device now to have more.
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 0));
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  DO(cuMemCreate(&handle, total / kBytes * 2 * kBytes, &prop, 0));
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    DO(cuMemAlloc(&synchronous, kBytes));
  }
  NoteCapturing(captured);
  Finish(captured);
  DO(cuMemFreeAsync(before, captured));
  if (synchronous != 0) DO(cuMemFree(synchronous));
  CheckBytes();
  for (const CUstream each : {captured, other, busy}) DO(cuStreamDestroy(each));
}

// As a job captures its first step that has all its memory from elsewhere: nothing has been asked for before.
SCENARIO(capture_before_a_training) {
  const CUstream stream = NewStream();
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(WorkFill(block, kBytes, 1, stream));
  DO(cuMemFreeAsync(block, stream));
  Finish(stream);
  Train({stream, /*synchronous=*/false, 60});
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Asking about a stream is nothing that a capture would have to hold; a driver may end it all the same.
SCENARIO(capture_of_a_stream_that_is_asked_about) {
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  unsigned flags = 0;
  int priority = 0;
  const std::pair<const char*, std::function<CUresult(CUstream)>> asks[] = {
      {"cuStreamGetCtx", [&](CUstream stream) { return cuStreamGetCtx(stream, &context); }},
      {"cuStreamGetFlags", [&](CUstream stream) { return cuStreamGetFlags(stream, &flags); }},
      {"cuStreamGetPriority", [&](CUstream stream) { return cuStreamGetPriority(stream, &priority); }},
      {"cuStreamGetGreenCtx", [&](CUstream stream) { return cuStreamGetGreenCtx(stream, &green); }},
  };
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  for (const auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    for (const CUstream stream : {captured, other, CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) {
      for (const auto& [name, ask] : asks) {
        DO(cuStreamBeginCapture(captured, mode));
        Report(name, ask(stream));
        NoteCapturing(captured);
        EndCapture(captured);
      }
    }
  }
  for (const CUstream each : {captured, other}) DO(cuStreamDestroy(each));
}

// A synchronous free may end a capture that is none of its own, whatever the address is.
SCENARIO(capture_beside_a_synchronous_free) {
  for (const auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    const CUstream captured = NewStream();
    const CUstream other = NewStream();
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, kBytes, other));
    DO(cuStreamSynchronize(other));
    for (const CUdeviceptr address : {block + 512, block}) {
      DO(cuStreamBeginCapture(captured, mode));
      DO(cuMemFree(address));
      NoteCapturing(captured);
      EndCapture(captured);
    }
    DO(cuMemFree(block));  // where it has not been freed
    CheckBytes();
    for (const CUstream each : {captured, other}) DO(cuStreamDestroy(each));
  }
}

// What was freed in a stream's order while that has work left is not over because a block that nobody uses is freed
// beside a capture, where nothing may be waited for.
SCENARIO(capture_beside_a_synchronous_free_and_work) {
  const CUstream captured = NewStream();
  const CUstream busy = NewStream();
  const CUstream other = NewStream();
  CUdeviceptr passing = 0;
  CUdeviceptr unused = 0;
  DO(cuMemAlloc(&unused, kBytes));
  DO(cuMemAllocAsync(&passing, kBytes, busy));
  for (int i = 0; i < 50; ++i) WorkFill(passing, kBytes, i, busy);
  DO(WorkVerify(passing, kBytes, 49, busy));
  DO(cuMemFreeAsync(passing, busy));
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuMemFree(unused));
  DO(cuMemFree(unused));  // once more
  std::vector<CUdeviceptr> blocks(8);
  EndCapture(captured);
  for (size_t i = 0; i < blocks.size(); ++i) {
    DO(cuMemAllocAsync(&blocks[i], kBytes, other));
    DO(WorkFill(blocks[i], kBytes, 100 + i, other));
  }
  DO(cuStreamSynchronize(busy));
  for (size_t i = 0; i < blocks.size(); ++i) {
    DO(WorkVerify(blocks[i], kBytes, 100 + i, other));
    DO(cuMemFreeAsync(blocks[i], other));
  }
  CheckBytes();
  for (const CUstream each : {captured, busy, other}) DO(cuStreamDestroy(each));
}

// A call that a capture may not contain.
void Forbidden(CUstreamCaptureMode mode) {
  const CUstream captured = NewStream();
  CUdeviceptr block = 0;
  CUdeviceptr before = 0;
  DO(cuMemAlloc(&before, kBytes));
  DO(cuStreamBeginCapture(captured, mode));
  if (DO(cuMemAlloc(&block, kBytes)) == 0) DO(cuMemFree(block));
  NoteCapturing(captured);
  EndCapture(captured);
  DO(cuStreamBeginCapture(captured, mode));
  DO(cuMemFree(before));
  NoteCapturing(captured);
  EndCapture(captured);
  DO(cuMemFree(before));
  DO(cuMemAlloc(&block, kBytes));
  DO(cuMemFree(block));
  DO(cuStreamDestroy(captured));
}

// In stream order, but on a stream that is not captured.
void ForbiddenBeside(CUstreamCaptureMode mode) {
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  CUdeviceptr before = 0;
  DO(cuMemAllocAsync(&before, kBytes, other));
  DO(cuStreamSynchronize(other));
  const auto end = [&] {
    NoteCapturing(captured);
    EndCapture(captured);
  };
  CUdeviceptr block = 0;
  DO(cuStreamBeginCapture(captured, mode));
  if (DO(cuMemAllocAsync(&block, kBytes, other)) == 0) DO(cuMemFreeAsync(block, other));
  end();
  DO(cuStreamBeginCapture(captured, mode));
  const int freed = DO(cuMemFreeAsync(before, other));
  end();
  if (freed != 0) DO(cuMemFreeAsync(before, other));
  CheckBytes();
  for (const CUstream each : {captured, other}) DO(cuStreamDestroy(each));
}

}  // namespace

SCENARIO(capture_global) { InsideAndOutside(CU_STREAM_CAPTURE_MODE_GLOBAL); }
SCENARIO(capture_thread_local) { InsideAndOutside(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
SCENARIO(capture_relaxed) { InsideAndOutside(CU_STREAM_CAPTURE_MODE_RELAXED); }
SCENARIO(capture_forbidden_global) { Forbidden(CU_STREAM_CAPTURE_MODE_GLOBAL); }
SCENARIO(capture_forbidden_thread_local) { Forbidden(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
SCENARIO(capture_forbidden_relaxed) { Forbidden(CU_STREAM_CAPTURE_MODE_RELAXED); }
SCENARIO(capture_forbidden_beside_global) { ForbiddenBeside(CU_STREAM_CAPTURE_MODE_GLOBAL); }
SCENARIO(capture_forbidden_beside_thread_local) { ForbiddenBeside(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
SCENARIO(capture_forbidden_beside_relaxed) { ForbiddenBeside(CU_STREAM_CAPTURE_MODE_RELAXED); }

// Memory of a graph lives on after its launch and is freed in the ordinary way.
SCENARIO(capture_memory_that_outlives_the_launch) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(WorkFill(block, kBytes, 5, stream));
  DO(cuStreamEndCapture(stream, &graph));
  DO(cuGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) {
    DO(cuGraphLaunch(executable, stream));
    DO(WorkVerify(block, kBytes, 5, stream));
    DO(cuMemFreeAsync(block, stream));
  }
  CheckBytes();
  DO(cuGraphExecDestroy(executable));
  DO(cuGraphDestroy(graph));
  DO(cuStreamDestroy(stream));
}

SCENARIO(capture_free_of_a_block_from_outside) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  const int freed = DO(cuMemFreeAsync(block, stream));
  EndCapture(stream);
  if (freed != 0) DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// A stream that waits for an event of a capture becomes part of it without a call that begins one.
SCENARIO(capture_that_spreads_by_an_event) {
  const CUstream first = NewStream();
  const CUstream second = NewStream();
  const CUevent fork = NewEvent();
  const CUevent join = NewEvent();
  CUdeviceptr block = 0;
  DO(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DO(cuEventRecord(fork, first));
  DO(cuStreamWaitEvent(second, fork, 0));
  DO(cuMemAllocAsync(&block, kBytes, second));
  DO(WorkFill(block, kBytes, 7, second));
  DO(WorkVerify(block, kBytes, 7, second));
  DO(cuMemFreeAsync(block, second));
  DO(cuEventRecord(join, second));
  DO(cuStreamWaitEvent(first, join, 0));
  Finish(first);
  DO(cuMemAllocAsync(&block, kBytes, second));  // captured no more
  DO(cuMemFreeAsync(block, second));
  CheckBytes();
  DO(cuEventDestroy(fork));
  DO(cuEventDestroy(join));
  DO(cuStreamDestroy(first));
  DO(cuStreamDestroy(second));
}

// Another thread allocates and frees while this one captures.
SCENARIO(capture_beside_another_thread) {
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    DO(cuCtxSetCurrent(MainContext()));
    CUdeviceptr block = 0;
    DO(cuMemAlloc(&block, kBytes));
    DO(cuMemFree(block));
    for (int i = 0; i < 20; ++i) {
      DO(cuMemAllocAsync(&block, kBytes, other));
      DO(WorkFill(block, kBytes, i, other));
      DO(WorkVerify(block, kBytes, i, other));
      DO(cuMemFreeAsync(block, other));
    }
  }).join();
  CUdeviceptr inside = 0;
  DO(cuMemAllocAsync(&inside, kBytes, captured));
  DO(WorkFill(inside, kBytes, 9, captured));
  DO(cuMemFreeAsync(inside, captured));
  Finish(captured);
  DO(cuStreamDestroy(captured));
  DO(cuStreamDestroy(other));
}

// A block is freed, and its stream destroyed, while nothing may be recorded; then another stream comes.
SCENARIO(capture_beside_the_end_of_a_stream) {
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  for (int i = 0; i < 20; ++i) {
    const CUstream first = NewStream();
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, 4 * kMiB, first);
    for (int k = 0; k < 60; ++k) WorkFill(block, 4 * kMiB, k, first);
    CUgraph graph = nullptr;
    cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuMemFreeAsync(block, first);
    cuStreamDestroy(first);
    cuStreamEndCapture(captured, &graph);
    cuGraphDestroy(graph);
    const CUstream second = NewStream();
    CUdeviceptr passing = 0;
    for (int k = 0; k < 2; ++k) {
      cuMemAllocAsync(&passing, kMiB, second);
      cuMemFreeAsync(passing, second);
      cuStreamSynchronize(second);
    }
    CUdeviceptr next[3] = {};
    for (CUdeviceptr& each : next) {
      cuMemAllocAsync(&each, 4 * kMiB, other);
      WorkFill(each, 4 * kMiB, 1000 + i, other);
    }
    cuCtxSynchronize();
    for (const CUdeviceptr each : next) {
      WorkVerify(each, 4 * kMiB, 1000 + i, other);
      cuMemFreeAsync(each, other);
    }
    cuStreamDestroy(second);
  }
  CheckBytes();
  CheckInfo(0);
  DO(cuStreamDestroy(captured));
  DO(cuStreamDestroy(other));
}

// Another thread makes the first call that is caught: a capture may begin while the library opens, unseen by
// it.
SCENARIO(capture_that_begins_with_another_threads_first_call) {
  const CUstream stream = NewStream();
  std::atomic<bool> begun{false};
  std::thread first([&] {
    cuCtxSetCurrent(MainContext());
    begun = true;
    size_t free = 0;
    size_t total = 0;
    cuMemGetInfo(&free, &total);
  });
  while (!begun) std::this_thread::yield();
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  first.join();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(WorkFill(block, kMiB, 1, stream));
  DO(cuMemFreeAsync(block, stream));
  Finish(stream);
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
}

SCENARIO(capture_into_a_graph_of_the_program) {
  const CUstream stream = NewStream();
  CUgraph graph = nullptr;
  CUgraph captured = nullptr;
  CUdeviceptr block = 0;
  DO(cuGraphCreate(&graph, 0));
  DO(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamEndCapture(stream, &captured));
  NOTE(captured == graph);
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuGraphDestroy(graph));
  DO(cuStreamDestroy(stream));
}

// A graph is captured once more by a call of a later CUDA than the headers may be of.
SCENARIO(capture_once_more_into_a_graph) {
  using Begin = CUresult (*)(CUstream, CUstreamCaptureMode, CUgraph, void*, void*);
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto begin_again = reinterpret_cast<Begin>(dlsym(driver, "cuStreamBeginRecaptureToGraph"));
  dlclose(driver);
  NOTE(begin_again != nullptr);
  if (begin_again == nullptr) return;
  const CUstream stream = NewStream();
  CUgraph graph = nullptr;
  CUgraph captured = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr block = 0;
  for (const bool again : {false, true}) {
    DO(again ? begin_again(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, graph, nullptr, nullptr)
             : cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const CUdeviceptr before = block;
    DO(cuMemAllocAsync(&block, kBytes, stream));
    NOTE(block == before);
    DO(WorkFill(block, kBytes, 1 + again, stream));
    DO(WorkVerify(block, kBytes, 1 + again, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamEndCapture(stream, &captured));
    NOTE(captured == graph);
    graph = captured;
  }
  DO(cuGraphInstantiate(&executable, graph, 0));
  DO(cuGraphLaunch(executable, stream));
  CheckBytes();
  DO(cuMemAllocAsync(&block, kBytes, stream));  // captured no more
  DO(cuMemFreeAsync(block, stream));
  DO(cuGraphExecDestroy(executable));
  DO(cuGraphDestroy(graph));
  DO(cuStreamDestroy(stream));
}

// Another thread may not end a capture: it is over none the less, and all that is asked for then is asked outside.
SCENARIO(capture_that_another_thread_would_end) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    CUgraph graph = nullptr;
    DO(cuStreamEndCapture(stream, &graph));
  }).join();
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(WorkFill(block, kBytes, 1, stream));
  DO(WorkVerify(block, kBytes, 1, stream));
  DO(cuMemFreeAsync(block, stream));
  Finish(stream);
  DO(cuStreamDestroy(stream));
}

// However a capture ends, it is over.
SCENARIO(capture_that_comes_to_nothing) {
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  const CUevent fork = NewEvent();
  CUgraph graph = nullptr;
  CUdeviceptr block = 0;
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));  // already
  DO(cuMemAlloc(&block, kBytes));                                     // makes it void
  DO(cuStreamEndCapture(captured, &graph));
  DO(cuStreamEndCapture(captured, &graph));  // no more
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuEventRecord(fork, captured));
  DO(cuStreamWaitEvent(other, fork, 0));
  DO(WorkFill(0, 0, 1, other));
  DO(cuStreamEndCapture(captured, &graph));  // `other` has not come back
  DO(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  Train({captured, /*synchronous=*/false, 60});
  CheckBytes();
  DO(cuEventDestroy(fork));
  DO(cuStreamDestroy(captured));
  DO(cuStreamDestroy(other));
}

// One thread captures, and another gives memory back, which makes the library look what is complete, on all
// streams: no call of its own may fall into the capture.
SCENARIO(capture_beside_a_thread_that_trims) {
  CUstream captured = nullptr;
  DO(cuStreamCreate(&captured, CU_STREAM_DEFAULT));  // the legacy default stream may not be used meanwhile
  CUcontext context = MainContext();
  std::atomic<bool> over{false};
  std::thread trims([&] {
    cuCtxSetCurrent(context);
    while (!over) cuMemPoolTrimTo(DefaultPool(0), 0);
  });
  int failures = 0;
  for (int i = 0; i < 300; ++i) {
    CUdeviceptr block = 0;
    CUgraph graph = nullptr;
    if (cuMemAllocAsync(&block, kBytes, CU_STREAM_LEGACY) != 0) ++failures;
    if (cuMemFreeAsync(block, CU_STREAM_LEGACY) != 0) ++failures;
    cuStreamQuery(captured);  // where it is slow, the other thread comes to the free
    if (cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != 0) ++failures;
    if (cuStreamEndCapture(captured, &graph) != 0) ++failures;
    if (graph != nullptr) cuGraphDestroy(graph);
  }
  over = true;
  trims.join();
  NOTE(failures);
  DO(cuStreamDestroy(captured));
}

// A thread that captures is not disturbed by another that frees, nor the other way round: each may begin
// while the other is at it.
SCENARIO(capture_beside_a_thread_that_frees) {
  std::atomic<bool> over{false};
  int failed_frees = 0;
  std::thread frees([&] {
    cuCtxSetCurrent(MainContext());
    while (!over) {
      CUdeviceptr block = 0;
      if (cuMemAlloc(&block, kBytes) != 0 || cuMemFree(block) != 0) ++failed_frees;
    }
  });
  const CUstream stream = NewStream();
  int failures = 0;
  for (int i = 0; i < 100; ++i) {
    CUgraph graph = nullptr;
    if (cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != 0) ++failures;
    if (WorkFill(0, 0, i, stream) != 0) ++failures;
    if (cuStreamEndCapture(stream, &graph) != 0) ++failures;
    if (graph != nullptr) cuGraphDestroy(graph);
    cuStreamQuery(stream);
  }
  over = true;
  frees.join();
  NOTE(failures);
  NOTE(failed_frees);
  DO(cuStreamDestroy(stream));
}

// Whoever ends while another is captured is forgotten once its work is over.
SCENARIO(capture_while_other_streams_end) {
  const CUstream captured = NewStream();
  for (int i = 0; i < 100; ++i) {
    const CUstream other = NewStream();
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, kBytes, other);
    WorkFill(block, kBytes, i, other);
    WorkVerify(block, kBytes, i, other);
    cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuMemFreeAsync(block, other);
    cuStreamDestroy(other);
    CUgraph graph = nullptr;
    cuStreamEndCapture(captured, &graph);
    cuGraphDestroy(graph);
    cuStreamSynchronize(captured);
  }
  CheckBytes();
  DO(cuStreamDestroy(captured));
}

// What is captured in a context is not made void by an end of it that the driver refuses.
SCENARIO(capture_beside_an_end_that_is_refused) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kBytes, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DO(WorkFill(block, kBytes, 1, stream));
  DO(cuCtxDestroy(MainContext()));  // a primary context is released, not destroyed
  DO(WorkVerify(block, kBytes, 1, stream));
  Finish(stream);
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}
