// Capture turns calls into nodes and forbids others; an interposer must step aside in exactly those cases.
// Run with SIMCUDA_STREAMS=deferred.
#include <thread>
#include <vector>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

class Capture : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    memory_ = Allocated(kBytes);
    stream_ = NewStream();
  }

  void Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    OK(cuStreamBeginCapture(stream_, mode));
  }
  CUgraph End() {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    return graph;
  }
  // The capture is void, and that is how it ends.
  void ExpectVoid() {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    OK(cuStreamIsCapturing(stream_, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
  }
  CUgraphExec Instantiated(CUgraph graph, unsigned long long flags = 0) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, flags), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    return exec;
  }

  static constexpr size_t kBytes = 4096;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
};

TEST_F(Capture, WhatIsCapturedRunsWhenItIsLaunched) {
  Begin();
  OK(simFill(memory_, kBytes, 5, stream_));
  EXPECT_EQ(simQueuedOperations(stream_), 0U);
  CUgraphExec exec = Instantiated(End());
  OK(simVerify(memory_, kBytes, 5, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_GT(Corrupted(), 0U) << "not filled before the launch";
  uint64_t before = Corrupted();
  OK(cuGraphLaunch(exec, stream_));
  OK(simVerify(memory_, kBytes, 5, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Corrupted(), before);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, AStreamJoinsThroughAnEventAndMustComeBack) {
  CUstream other = NewStream();
  Begin();
  OK(simFill(memory_, kBytes, 5, stream_));
  After(stream_, other);
  OK(simVerify(memory_, kBytes, 5, other));
  After(other, stream_);
  OK(simFill(memory_, kBytes, 6, stream_));
  CUgraph graph = End();
  size_t nodes = 0;
  OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 3U);
  CUgraphExec exec = Instantiated(graph);
  for (unsigned long long seed = 1; seed <= 20; ++seed) {
    simReseed(seed);
    OK(cuGraphLaunch(exec, stream_));
    OK(cuStreamSynchronize(stream_));
  }
  EXPECT_EQ(Corrupted(), 0U);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, BranchesOfAGraphRunInAnyOrder) {
  CUstream other = NewStream();
  Begin();
  After(stream_, other);
  OK(simFill(memory_, kBytes, 6, stream_));
  OK(simVerify(memory_, kBytes, 5, other));
  After(other, stream_);
  CUgraphExec exec = Instantiated(End());
  int hits = 0;
  for (unsigned long long seed = 1; seed <= 50; ++seed) {
    simReseed(seed);
    OK(simFill(memory_, kBytes, 5, stream_));
    uint64_t before = Corrupted();
    OK(cuGraphLaunch(exec, stream_));
    OK(cuStreamSynchronize(stream_));
    hits += Corrupted() > before;
  }
  EXPECT_GT(hits, 0);
  EXPECT_LT(hits, 50);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, AStreamThatDoesNotComeBack) {
  CUstream other = NewStream();
  Begin();
  OK(simFill(memory_, kBytes, 5, stream_));
  After(stream_, other);
  OK(simFill(memory_, kBytes, 6, other));
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  OK(cuStreamSynchronize(other));
}

TEST_F(Capture, AllocationsBecomeNodes) {
  CUdeviceptr inside = 0;
  Begin();
  OK(cuMemAllocAsync(&inside, kBytes, stream_));
  OK(simFill(inside, kBytes, 5, stream_));
  OK(simVerify(inside, kBytes, 5, stream_));
  OK(cuMemFreeAsync(inside, stream_));
  EXPECT_EQ(cuMemFreeAsync(inside, stream_), CUDA_ERROR_INVALID_VALUE);
  CUgraph graph = End();
  std::vector<CUgraphNode> nodes(4);
  size_t count = nodes.size();
  OK(cuGraphGetNodes(graph, nodes.data(), &count));
  ASSERT_EQ(count, 4U);
  CUgraphNodeType first = CU_GRAPH_NODE_TYPE_EMPTY, last = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(cuGraphNodeGetType(nodes.front(), &first));
  OK(cuGraphNodeGetType(nodes.back(), &last));
  EXPECT_EQ(first, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  EXPECT_EQ(last, CU_GRAPH_NODE_TYPE_MEM_FREE);
  CUgraphExec exec = Instantiated(graph);
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Corrupted(), 0U);
  EXPECT_EQ(Illegal(), 0U);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, WhatALaunchLeavesAllocatedIsFreedOutside) {
  CUdeviceptr inside = 0;
  Begin();
  OK(cuMemAllocAsync(&inside, kBytes, stream_));
  OK(simFill(inside, kBytes, 5, stream_));
  CUgraphExec exec = Instantiated(End());
  OK(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE) << "while the first one's memory lives";
  OK(simVerify(inside, kBytes, 5, stream_));
  OK(cuMemFreeAsync(inside, stream_));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuMemFree(inside));
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 0U);
  OK(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(simPhysicalBytes(0), kBytes) << "the memory of the test alone";
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, APoolDoesNotGiveWayToALaunch) {
  CUdeviceptr pooled = 0;
  CUdeviceptr inside = 0;
  size_t left = 0;
  size_t total = 0;
  Begin();
  OK(cuMemAllocAsync(&inside, 16 << 20, stream_));
  OK(cuMemFreeAsync(inside, stream_));
  CUgraphExec exec = Instantiated(End());
  OK(cuMemGetInfo(&left, &total));
  OK(cuMemAllocAsync(&pooled, left - (8 << 20), stream_));
  OK(cuMemFreeAsync(pooled, stream_));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuStreamSynchronize(stream_));  // at which a pool gives back what it has free
  OK(cuGraphLaunch(exec, stream_));
  OK(cuStreamSynchronize(stream_));
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Capture, OrdinaryMemoryIsNotFreedInAGraph) {
  CUdeviceptr outside = 0;
  OK(cuMemAllocAsync(&outside, 1, stream_));
  Begin();
  EXPECT_EQ(cuMemFreeAsync(outside, stream_), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(End()));
  OK(cuMemFreeAsync(outside, stream_));
}

TEST_F(Capture, PlainAllocationsVoidIt) {
  Begin();
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectVoid();
  Begin();
  EXPECT_EQ(cuMemFree(memory_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectVoid();
}

// Elsewhere than in the capture: there they become nodes.
TEST_F(Capture, AllocationsInStreamOrderVoidIt) {
  const CUstream other = NewStream();
  CUdeviceptr memory = 0;
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    Begin(mode);
    EXPECT_EQ(cuMemAllocAsync(&memory, 1, other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ExpectVoid();
    Begin(mode);
    EXPECT_EQ(cuMemFreeAsync(0, other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ExpectVoid();
  }
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuMemAllocAsync(&memory, 1, other));
  OK(cuMemFreeAsync(memory, other));
  OK(cuGraphDestroy(End()));
}

TEST_F(Capture, AnotherThreadVoidsItsEnd) {
  Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUgraph graph = nullptr;
  std::thread([&] {
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  OK(simFill(memory_, kBytes, 5, stream_));
  EXPECT_EQ(simQueuedOperations(stream_), 1U) << "captured no more";
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, UnlessTheThreadSaysThatItKnowsBetter) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Begin();
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuMemFree(Allocated(1)));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  OK(cuGraphDestroy(End()));
}

TEST_F(Capture, OtherThreadsAreBoundByAGlobalCaptureOnly) {
  for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    Begin(mode);
    CUresult answer = CUDA_SUCCESS;
    std::thread([&] {
      CUdeviceptr memory = 0;
      OK(cuCtxSetCurrent(context_));
      answer = cuMemAlloc(&memory, 1);
    }).join();
    bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    EXPECT_EQ(answer, global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CUresult end = cuStreamEndCapture(stream_, &graph);
    EXPECT_EQ(end, global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
  }
}

TEST_F(Capture, WaitingVoidsIt) {
  Begin();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectVoid();
  Begin();
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectVoid();
  Begin();
  CUevent event = NewEvent();
  OK(cuEventRecord(event, stream_));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  ExpectVoid();
}

TEST_F(Capture, TheLegacyStreamMayNotMeetABlockingStreamThatCaptures) {
  stream_ = NewStream(CU_STREAM_DEFAULT);
  Begin();
  EXPECT_EQ(cuMemsetD8Async(memory_, 0, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  ExpectVoid();
  stream_ = NewStream(CU_STREAM_NON_BLOCKING);
  Begin();
  OK(cuMemsetD8Async(memory_, 0, 1, nullptr));
  OK(cuGraphDestroy(End()));
}

TEST_F(Capture, WorkFromBeforeDoesNotComeIn) {
  CUstream other = NewStream();
  CUevent event = NewEvent();
  OK(cuEventRecord(event, other));
  Begin();
  EXPECT_EQ(cuStreamWaitEvent(stream_, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  ExpectVoid();
}

TEST_F(Capture, TheLegacyStreamCannotBeCaptured) {
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(Capture, EndsWithItsContext) {
  CUcontext main = nullptr;
  CUcontext other = nullptr;
  OK(cuCtxGetCurrent(&main));
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuStreamBeginCapture(NewStream(), CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(main));
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kBytes));  // nothing stands in its way
  OK(cuMemFree(block));
}

// Of a later CUDA than the headers'.
extern "C" CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                                  void* callback, void* data);

TEST_F(Capture, OnceMoreIntoAGraph) {
  CUdeviceptr first = 0, again = 0;
  Begin();
  OK(cuMemAllocAsync(&first, kBytes, stream_));
  OK(cuMemFreeAsync(first, stream_));
  CUgraph graph = End();
  OK(cuStreamBeginRecaptureToGraph(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL, graph, nullptr, nullptr));
  OK(cuMemAllocAsync(&again, kBytes, stream_));
  EXPECT_EQ(again, first);
  OK(cuMemFreeAsync(again, stream_));
  EXPECT_EQ(End(), graph);
  OK(cuStreamBeginRecaptureToGraph(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL, graph, nullptr, nullptr));
  OK(simFill(memory_, kBytes, 1, stream_));
  CUgraph captured = nullptr;
  EXPECT_EQ(static_cast<int>(cuStreamEndCapture(stream_, &captured)), 918) << "it has other nodes";
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, IntoAGraphThatIsThereAlready) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  OK(cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(simFill(memory_, kBytes, 5, stream_));
  CUgraph captured = End();
  EXPECT_EQ(captured, graph);
  size_t nodes = 0;
  OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 1U);
  OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace simtest
