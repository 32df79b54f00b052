// Work in a blocking stream and in the legacy default stream, which wait for each other without being told to: an
// allocation or a free in one of them is work there, too.
#include "tests/cuda/scenarios/scenario.h"

namespace {

constexpr size_t kBlock = 2 * kMiB;

CUstream BlockingStream() {
  CUstream stream = nullptr;
  DO(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  return stream;
}

}  // namespace

// What one blocking stream has read is freed in the legacy stream, and what is asked for there another one fills.
SCENARIO(default_stream_between_two_that_block) {
  const CUstream reads = BlockingStream();
  const CUstream fills = BlockingStream();
  for (int i = 0; i < 50; ++i) {
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, kBlock, nullptr);
    WorkFill(block, kBlock, 2 * i, reads);
    WorkVerify(block, kBlock, 2 * i, reads);
    cuMemFreeAsync(block, nullptr);
    cuMemAllocAsync(&block, kBlock, nullptr);
    WorkFill(block, kBlock, 2 * i + 1, fills);
    WorkVerify(block, kBlock, 2 * i + 1, fills);
    cuMemFreeAsync(block, nullptr);
  }
  CheckBytes();
  DO(cuStreamDestroy(reads));
  DO(cuStreamDestroy(fills));
}

// What the legacy stream uses is a block of a stream that has nothing else to do.
SCENARIO(default_stream_whose_block_another_frees) {
  const CUstream blocking = BlockingStream();
  const CUmemoryPool pool = DefaultPool(0);
  for (int i = 0; i < 50; ++i) {
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, kBlock, blocking);
    WorkFill(block, kBlock, i, nullptr);
    WorkVerify(block, kBlock, i, nullptr);
    cuMemFreeAsync(block, blocking);
    cuMemPoolTrimTo(pool, 0);
  }
  CheckBytes();
  DO(cuStreamDestroy(blocking));
}

// What blocking streams use is freed in the legacy stream while something is captured, where nothing can be queued but by
// the driver; then a stream that waits for neither asks for as much.
SCENARIO(default_stream_frees_beside_a_capture) {
  const CUstream blocking = BlockingStream();
  const CUstream captured = NewStream();
  const CUstream apart = NewStream();
  const CUmemoryPool pool = DefaultPool(0);
  for (int i = 0; i < 15; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr other = 0;
    CUgraph graph = nullptr;
    cuMemAllocAsync(&block, kBlock, nullptr);
    for (int work = 0; work < 8; ++work) WorkFill(block, kBlock, i + work, blocking);
    WorkVerify(block, kBlock, i + 7, blocking);
    cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuMemFreeAsync(block, nullptr);
    cuStreamEndCapture(captured, &graph);
    cuGraphDestroy(graph);
    cuMemPoolTrimTo(pool, 0);
    cuMemAllocAsync(&other, kBlock, apart);
    WorkFill(other, kBlock, 100 + i, apart);
    WorkVerify(other, kBlock, 100 + i, apart);
    cuMemFreeAsync(other, apart);
  }
  CheckBytes();
  for (const CUstream each : {blocking, captured, apart}) DO(cuStreamDestroy(each));
}
