// What pools keep, and give back: when they are trimmed, and when they end.
#include <algorithm>

#include "tests/cuda/scenarios/scenario.h"

// What is trimmed comes back to the device.
SCENARIO(pool_trim) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  cuuint64_t keep_all = ~cuuint64_t{0};
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  CUdeviceptr block[2] = {};
  DO(cuMemAllocAsync(&block[0], 64 * kMiB, stream));
  DO(cuMemAllocAsync(&block[1], 32 * kMiB, stream));
  DO(WorkFill(block[1], 32 * kMiB, 4, stream));
  DO(cuMemFreeAsync(block[0], stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolTrimTo(pool, 0));
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 32 * kMiB);
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 96 * kMiB);
  CheckInfo(32 * kMiB);
  DO(WorkVerify(block[1], 32 * kMiB, 4, stream));
  DO(cuMemFreeAsync(block[1], stream));
  DO(cuCtxSynchronize());
  DO(cuMemPoolTrimTo(pool, 0));
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 4 * kMiB);  // ours may keep a granule
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Of what a training goes round in, too, which it may need again.
SCENARIO(pool_trim_in_training) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  for (int i = 0; i < 2; ++i) {
    Train({stream, /*synchronous=*/false, 40});
    DO(cuMemPoolTrimTo(pool, 0));
    NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 4 * kMiB);
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

namespace {

// Of `pool`, the default one, which has been told to keep what is freed.
void Have64MiBFree(CUmemoryPool pool, CUstream stream) {
  cuuint64_t keep_all = ~cuuint64_t{0};
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, 64 * kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
}

}  // namespace

// What is to be kept is kept, whatever else could be given back. (NVIDIA's driver kept nothing where SIZE_MAX was to be
// kept.)
SCENARIO(pool_trim_to_a_part) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  Have64MiBFree(pool, stream);
  for (const size_t keep : {kKiB * kMiB, 48 * kMiB, 17 * kMiB}) {
    const auto tell = [&](const char* when) {
      const size_t reserved = PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
      std::fprintf(stderr, "%zu MiB %s a trim to %zu\n", reserved / kMiB, when, keep / kMiB);
    };
    tell("before");
    DO(cuMemPoolTrimTo(pool, keep));
    tell("after");
    NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= std::min(keep, 64 * kMiB));
  }
  DO(cuMemPoolTrimTo(pool, 0));
  CheckInfo(0);
  DO(cuStreamDestroy(stream));
}

// What one pool keeps, because it was told to, is not another one's to give back.
SCENARIO_ALONE(pool_destroyed_beside_another) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  Have64MiBFree(pool, stream);
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * kMiB);
  const CUmemoryPool other = NewPool(0);
  DO(cuMemPoolTrimTo(other, 0));
  DO(cuMemPoolDestroy(other));
  DO(cuMemPoolDestroy(pool));  // no one may
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * kMiB);
  DO(cuMemPoolTrimTo(pool, 0));
  DO(cuStreamDestroy(stream));
}

// The same of what a training needs again in its next round, which another pool had blocks beside.
SCENARIO_ALONE(pool_destroyed_beside_a_training) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  cuuint64_t keep_all = ~cuuint64_t{0};
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  Train({stream, /*synchronous=*/false, 60});
  const CUmemoryPool other = NewPool(0);
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, kMiB, other, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(other));
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 14 * kMiB);
  DO(cuMemPoolTrimTo(pool, 0));
  DO(cuStreamDestroy(stream));
}

namespace {

// Whether a graph that allocates can have `bytes`.
void LaunchAGraphOf(size_t bytes, CUstream stream) {
  CUdeviceptr block = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuMemAllocAsync(&block, bytes, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamEndCapture(stream, &graph));
  DO(cuGraphInstantiate(&executable, graph, 0));
  DO(cuGraphLaunch(executable, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuGraphExecDestroy(executable));
  DO(cuGraphDestroy(graph));
}

}  // namespace

// What a pool kept is the device's again once the pool is gone: a graph that allocates can have it.
SCENARIO_ALONE(pool_destroyed_gives_back) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 4 * 3 / kMiB * kMiB;
  const CUmemoryPool pool = NewPool(0);
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, most, pool, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(pool));
  LaunchAGraphOf(most, stream);
  DO(cuStreamDestroy(stream));
}

// What a training of it would need again, too.
SCENARIO_ALONE(pool_destroyed_after_a_training) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 16 * 15 / kMiB * kMiB;
  const CUmemoryPool pool = NewPool(0);
  DO(cuDeviceSetMemPool(0, pool));
  Train({stream, /*synchronous=*/false, 60});
  DO(cuMemPoolDestroy(pool));
  LaunchAGraphOf(most, stream);
  DO(cuStreamDestroy(stream));
}

// And once it is trimmed, whichever pool was there first.
SCENARIO_ALONE(pool_trim_gives_back) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 4 * 3 / kMiB * kMiB;
  const CUmemoryPool pool = NewPool(0);
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuMemAllocFromPoolAsync(&block, most, pool, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolTrimTo(pool, 0));
  LaunchAGraphOf(most, stream);
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}
