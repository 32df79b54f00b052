// The stream-ordered allocator: an interposer replaces it, so its order, its accounting and its refusals are
// what the interposer is compared with. Run with SIMCUDA_STREAMS=deferred.
#include <unistd.h>

#include <set>
#include <vector>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

class Pools : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    OK(cuDeviceGetDefaultMemPool(&pool_, 0));
  }
  void TearDown() override {
    Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
    Machine::TearDown();
  }

  CUdeviceptr Take(size_t bytes, CUstream stream) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAllocAsync(&memory, bytes, stream), CUDA_SUCCESS);
    return memory;
  }
  uint64_t Get(CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool_, attribute, &value), CUDA_SUCCESS);
    return value;
  }
  void Set(CUmemPool_attribute attribute, cuuint64_t value) {
    EXPECT_EQ(cuMemPoolSetAttribute(pool_, attribute, &value), CUDA_SUCCESS);
  }
  CUmemoryPool OwnPool(size_t most = 0) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.maxSize = most;
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
  }

  CUmemoryPool pool_ = nullptr;
};

TEST_F(Pools, AllocateUseFree) {
  CUstream stream = NewStream();
  CUdeviceptr memory = Take(1000, stream);
  OK(simFill(memory, 1000, 1, stream));
  OK(simVerify(memory, 1000, 1, stream));
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(Corrupted(), 0U);
  EXPECT_EQ(Illegal(), 0U);
}

TEST_F(Pools, AHandleComesAgain) {
  std::set<CUmemoryPool> handles;
  for (int i = 0; i < 100; ++i) {
    const CUmemoryPool pool = OwnPool();
    handles.insert(pool);
    OK(cuMemPoolDestroy(pool));
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_LT(handles.size(), 100U);
}

TEST_F(Pools, UsedAndReservedAreCounted) {
  CUstream stream = NewStream();
  CUdeviceptr memory = Take(1000, stream);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024U);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kPage);
  EXPECT_EQ(simPhysicalBytes(0), kPage);
  OK(cuMemFreeAsync(memory, stream));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kPage);
}

TEST_F(Pools, HighWaterMarksAreResetToWhatIs) {
  CUstream stream = NewStream();
  CUdeviceptr big = Take(3 * kPage, stream);
  CUdeviceptr small = Take(512, stream);
  OK(cuMemFreeAsync(big, stream));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * kPage + 512);
  Set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 512U);
  cuuint64_t nonsense = 5;
  EXPECT_EQ(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &nonsense), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(small, stream));
}

TEST_F(Pools, ASynchronisationGivesBackWhatIsAboveTheThreshold) {
  CUstream stream = NewStream();
  OK(cuMemFreeAsync(Take(kPage, stream), stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~uint64_t{0});
  OK(cuMemFreeAsync(Take(kPage, stream), stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(simPhysicalBytes(0), kPage);
}

TEST_F(Pools, TrimKeepsAsMuchAsItIsTold) {
  CUstream stream = NewStream();
  Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~uint64_t{0});
  CUdeviceptr a = Take(kPage, stream), b = Take(kPage, stream), c = Take(kPage, stream);
  OK(cuMemFreeAsync(a, stream));
  OK(cuMemFreeAsync(b, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolTrimTo(pool_, 2 * kPage));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * kPage);
  OK(cuMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kPage) << "what is in use stays";
  OK(cuMemFreeAsync(c, stream));
}

TEST_F(Pools, TheSameStreamTakesItsMemoryAgainAtOnce) {
  CUstream stream = NewStream();
  int flag = 0;
  OK(simSpinUntil(&flag, stream));
  CUdeviceptr first = Take(kPage, stream);
  OK(cuMemFreeAsync(first, stream));
  EXPECT_EQ(Take(kPage, stream), first);
  flag = 1;
  OK(cuMemFreeAsync(first, stream));
  OK(cuStreamSynchronize(stream));  // the kernel reads `flag`, which ends with this test
}

TEST_F(Pools, AnotherStreamOnlyOnceTheFreeHasRun) {
  Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~uint64_t{0});
  CUstream stream = NewStream(), other = NewStream();
  int flag = 0;
  OK(simSpinUntil(&flag, stream));
  CUdeviceptr first = Take(kPage, stream);
  OK(cuMemFreeAsync(first, stream));
  CUdeviceptr meanwhile = Take(kPage, other);
  EXPECT_NE(meanwhile, first);
  flag = 1;
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(Take(kPage, other), first);
  OK(cuMemFreeAsync(first, other));
  OK(cuMemFreeAsync(meanwhile, other));
}

TEST_F(Pools, NoSeedLetsTwoStreamsHaveTheSameMemory) {
  CUstream streams[] = {NewStream(), NewStream(), NewStream()};
  for (unsigned long long seed = 1; seed <= 50; ++seed) {
    simReseed(seed);
    for (unsigned long long i = 0; i < 30; ++i) {
      CUstream stream = streams[(seed + i * i) % 3];
      size_t bytes = 512 * (1 + i * 7 % 50);
      CUdeviceptr memory = Take(bytes, stream);
      OK(simFill(memory, bytes, i, stream));
      OK(simVerify(memory, bytes, i, stream));
      OK(cuMemFreeAsync(memory, stream));
    }
    OK(cuCtxSynchronize());
  }
  EXPECT_EQ(Corrupted(), 0U);
  EXPECT_EQ(Illegal(), 0U);
}

TEST_F(Pools, UseOnAnotherStreamAfterTheFreeIsSeen) {
  CUstream owner = NewStream(), late = NewStream();
  uint64_t before = Corrupted();
  for (unsigned long long seed = 1; seed <= 50; ++seed) {
    simReseed(seed);
    CUdeviceptr memory = Take(4096, owner);
    OK(simFill(memory, 4096, 1, owner));
    After(owner, late);
    OK(simVerify(memory, 4096, 1, late));  // and the owner does not wait for it
    OK(cuMemFreeAsync(memory, owner));
    CUdeviceptr next = Take(4096, owner);
    OK(simFill(next, 4096, 2, owner));
    OK(cuMemFreeAsync(next, owner));
    OK(cuCtxSynchronize());
  }
  EXPECT_GT(Corrupted(), before);
}

TEST_F(Pools, WhatTheDeviceHasNot) {
  CUstream stream = NewStream();
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAllocAsync(&memory, 65 * kMiB, stream), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr all = Take(64 * kMiB, stream);
  EXPECT_EQ(cuMemAllocAsync(&memory, 1, stream), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFreeAsync(all, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemAlloc(&memory, 64 * kMiB));
}

TEST_F(Pools, ReservedMemoryThatIsFreeMakesRoomForOthers) {
  CUstream stream = NewStream();
  Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~uint64_t{0});
  OK(cuMemFreeAsync(Take(64 * kMiB, stream), stream));
  OK(cuStreamSynchronize(stream));
  ASSERT_EQ(simPhysicalBytes(0), 64 * kMiB);
  Allocated(64 * kMiB);
}

TEST_F(Pools, ArgumentsThatMakeNoSense) {
  CUdeviceptr memory = 0;
  memory = 77;
  OK(cuMemAllocAsync(&memory, 0, nullptr));
  EXPECT_EQ(memory, 0U);
  EXPECT_EQ(cuMemFreeAsync(12345, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(0, nullptr));
  memory = Take(512, nullptr);
  OK(cuMemFreeAsync(memory, nullptr));
  EXPECT_EQ(cuMemFreeAsync(memory, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&memory, 1, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Pools, PlainFreeTakesPoolMemoryToo) {
  CUdeviceptr memory = Take(512, nullptr);
  OK(cuMemFree(memory));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U);
}

// Whoever frees so has to have waited.
TEST_F(Pools, PlainFreeWaitsForNothing) {
  CUstream stream = NewStream();
  CUdeviceptr memory = Take(512, stream);
  OK(simFill(memory, 512, 1, stream));
  OK(cuMemFree(memory));
  EXPECT_EQ(simPhysicalBytes(0), 0U) << "and keeps nothing";
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Pools, PlainMemoryGoesBackWhenTheStreamComesToItsFree) {
  CUstream stream = NewStream();
  int flag = 0;
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, 512));
  OK(simSpinUntil(&flag, stream));
  OK(simFill(memory, 512, 1, stream));
  OK(cuMemFreeAsync(memory, stream));
  EXPECT_EQ(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(simPhysicalBytes(0), 512U);
  flag = 1;
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
}

TEST_F(Pools, PoolMemoryKnowsItsPoolAndHasNoIpcHandle) {
  CUdeviceptr memory = Take(512, nullptr);
  CUmemoryPool pool = nullptr;
  OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  EXPECT_EQ(pool, pool_);
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(memory, nullptr));
}

TEST_F(Pools, PoolMemoryBelongsToNoContextAndIsShownToANetworkAsAFileAlone) {
  CUdeviceptr memory = Take(4096, nullptr);
  CUcontext context = context_;
  unsigned capable = 77;
  int file = -1;
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  EXPECT_EQ(context, nullptr);
  OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, memory));
  EXPECT_EQ(capable, 0U);
  OK(cuMemGetHandleForAddressRange(&file, memory, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  EXPECT_GE(file, 0);
  close(file);
  OK(cuMemFreeAsync(memory, nullptr));
}

TEST_F(Pools, APoolOfOnesOwn) {
  CUstream stream = NewStream();
  CUmemoryPool own = OwnPool(2 * kPage);
  OK(cuDeviceSetMemPool(0, own));
  CUdeviceptr memory = Take(kPage, stream);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U) << "of the default pool";
  CUdeviceptr too_much = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&too_much, 2 * kPage, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemPoolDestroy(own));
  CUmemoryPool current = nullptr;
  OK(cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool_);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&too_much, 1, own, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(simPhysicalBytes(0), kPage) << "outstanding memory outlives its pool";
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  EXPECT_EQ(cuMemPoolDestroy(pool_), CUDA_ERROR_INVALID_VALUE);
}

// What an interposer that takes it for a plain one would get wrong.
TEST_F(Pools, APoolOfAnotherKindShowsInItsBlocks) {
  CUstream stream = NewStream();
  const auto block_of = [&](CUmemPoolProps properties) {
    if (properties.allocType == 0) properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    if (properties.location.type == 0) properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    CUmemPoolPtrExportData data;
    int file = -1;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&memory, 512, pool, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolExportPointer(&data, memory), CUDA_ERROR_INVALID_VALUE) << "before its pool";
    cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    EXPECT_EQ(file >= 0, properties.handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (file >= 0) close(file);
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    return memory;
  };
  const auto is = [](CUdeviceptr memory, CUpointer_attribute attribute) {
    unsigned value = 77;
    EXPECT_EQ(cuPointerGetAttribute(&value, attribute, memory), CUDA_SUCCESS);
    return value;
  };
  CUmemPoolProps properties = {};
  const CUdeviceptr plain = block_of(properties);
  properties.usage = CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS;
  const CUdeviceptr decompressed = block_of(properties);
  properties = {};
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUdeviceptr exported = block_of(properties);
  properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  const CUdeviceptr managed = block_of(properties);
  properties = {};
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  const CUdeviceptr on_host = block_of(properties);
  EXPECT_EQ(simHostPhysicalBytes(), kPage);
  CUmemPoolPtrExportData data;
  for (const CUdeviceptr each : {plain, decompressed, exported, managed, on_host}) {
    EXPECT_EQ(is(each, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE), each == decompressed ? 1U : 0U);
    EXPECT_EQ(is(each, CU_POINTER_ATTRIBUTE_IS_MANAGED), each == managed ? 1U : 0U);
    const unsigned type = each == on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    EXPECT_EQ(is(each, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), type);
    EXPECT_EQ(cuMemPoolExportPointer(&data, each) == CUDA_SUCCESS, each == exported);
    OK(cuMemFreeAsync(each, stream));
  }
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(simHostPhysicalBytes(), 0U);
}

}  // namespace
}  // namespace simtest
