// Virtual memory management: an arena lives on it, and the simulated device must notice when work meets
// addresses whose memory is not there, or no longer. Run with SIMCUDA_STREAMS=deferred,
// on a device of 64 MiB and as much of the host's memory.
#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

class VirtualMemory : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    OK(cuMemAddressReserve(&range_, 4 * kPage, 0, 0, 0));
  }
  void TearDown() override {
    OK(cuMemAddressFree(range_, 4 * kPage));
    Machine::TearDown();
  }

  CUmemGenericAllocationHandle Created(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &kOnDevice, 0), CUDA_SUCCESS);
    return handle;
  }
  // Memory for one page of the range, which goes with its mapping.
  void Back(size_t page) {
    CUmemGenericAllocationHandle handle = Created(kPage);
    OK(cuMemMap(range_ + page * kPage, kPage, 0, handle, 0));
    OK(cuMemRelease(handle));
    OK(cuMemSetAccess(range_ + page * kPage, kPage, &kReadWrite, 1));
  }

  static constexpr CUmemAllocationProp kOnDevice = {
      CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_HANDLE_TYPE_NONE, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  static constexpr CUmemAccessDesc kReadWrite = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr range_ = 0;
};

TEST_F(VirtualMemory, MapUseUnmap) {
  Back(0);
  Back(1);
  OK(simFill(range_ + kPage - 100, 200, 1, nullptr));
  OK(simVerify(range_ + kPage - 100, 200, 1, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 0U);
  EXPECT_EQ(simPhysicalBytes(0), 2 * kPage);
  OK(cuMemUnmap(range_, 2 * kPage));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
}

TEST_F(VirtualMemory, ReservedAddressesHoldNothing) {
  OK(simFill(range_, 1, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Illegal(), 1U);
}

TEST_F(VirtualMemory, AMappingWithoutAccessIsNotThereForWork) {
  CUmemGenericAllocationHandle handle = Created(kPage);
  OK(cuMemMap(range_, kPage, 0, handle, 0));
  OK(cuMemRelease(handle));
  OK(simFill(range_, 1, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuMemUnmap(range_, kPage));
}

TEST_F(VirtualMemory, MemoryThatMayOnlyBeRead) {
  Back(0);
  CUmemAccessDesc read = kReadWrite;
  read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  OK(cuMemSetAccess(range_, kPage, &read, 1));
  unsigned long long flags = 0;
  OK(cuMemGetAccess(&flags, &read.location, range_ + 5));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READ));
  OK(simVerify(range_, 1, 1, nullptr));
  OK(cuCtxSynchronize());
  OK(simFill(range_, 1, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuMemUnmap(range_, kPage));
}

TEST_F(VirtualMemory, UnmappingUnderQueuedWorkIsSeen) {
  Back(0);
  CUstream stream = NewStream();
  int flag = 0;
  OK(simSpinUntil(&flag, stream));
  OK(simFill(range_, 1, 1, stream));
  OK(cuMemUnmap(range_, kPage));
  flag = 1;
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Illegal(), 1U);
}

TEST_F(VirtualMemory, MemoryMovesWithItsHandle) {
  CUmemGenericAllocationHandle handle = Created(kPage);
  OK(cuMemMap(range_, kPage, 0, handle, 0));
  OK(cuMemSetAccess(range_, kPage, &kReadWrite, 1));
  OK(simFill(range_, kPage, 1, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemUnmap(range_, kPage));
  CUdeviceptr elsewhere = range_ + 3 * kPage;
  OK(cuMemMap(elsewhere, kPage, 0, handle, 0));
  OK(cuMemSetAccess(elsewhere, kPage, &kReadWrite, 1));
  OK(simVerify(elsewhere, kPage, 1, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 0U);
  OK(cuMemRelease(handle));
  EXPECT_EQ(simPhysicalBytes(0), kPage) << "a mapping keeps its memory";
  OK(cuMemUnmap(elsewhere, kPage));
}

// The two ways to ask for the host's memory; there is one node.
constexpr CUmemLocation kOnHost[] = {{CU_MEM_LOCATION_TYPE_HOST, 7}, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};

TEST_F(VirtualMemory, HostMemoryIsNotTheDevices) {
  int node = -1;
  OK(cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0));
  EXPECT_EQ(node, kOnHost[1].id);
  CUmemGenericAllocationHandle full = Created(64 * kMiB);  // all of the device
  CUmemAllocationProp prop = kOnDevice;
  for (size_t page = 0; page < 2; ++page) {
    CUmemGenericAllocationHandle handle = 0;
    prop.location = kOnDevice.location;
    EXPECT_EQ(cuMemCreate(&handle, kPage, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    prop.location = kOnHost[page];
    OK(cuMemCreate(&handle, kPage, &prop, 0));
    OK(cuMemMap(range_ + page * kPage, kPage, 0, handle, 0));
    OK(cuMemRelease(handle));
    EXPECT_EQ(simHostPhysicalBytes(), (page + 1) * kPage);
  }
  EXPECT_EQ(simPhysicalBytes(0), 64 * kMiB);
  OK(cuMemSetAccess(range_, 2 * kPage, &kReadWrite, 1));
  OK(simFill(range_, 2 * kPage, 1, nullptr));
  OK(simVerify(range_, 2 * kPage, 1, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted() + Illegal(), 0U);
  unsigned type = 0;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range_));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  OK(cuMemUnmap(range_, 2 * kPage));
  EXPECT_EQ(simHostPhysicalBytes(), 0U);
  EXPECT_EQ(simPeakHostPhysicalBytes(), 2 * kPage);
  OK(cuMemRelease(full));
}

TEST_F(VirtualMemory, HostMemoryEnds) {
  CUmemAllocationProp prop = kOnDevice;
  prop.location = kOnHost[0];
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, 66 * kMiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
  EXPECT_EQ(cuMemCreate(&handle, kPage, &prop, 0), CUDA_ERROR_INVALID_VALUE) << "there is no such node";
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  EXPECT_EQ(cuMemCreate(&handle, kPage, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemory, ARetainedHandleKeepsTheMemory) {
  Back(0);
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(range_ + 5)));
  OK(cuMemUnmap(range_, kPage));
  EXPECT_EQ(simPhysicalBytes(0), kPage);
  CUmemAllocationProp properties = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
  EXPECT_EQ(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  OK(cuMemRelease(handle));
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemory, WhatDoesNotFitTogetherIsRefused) {
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kPage + 1, &kOnDevice, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 66 * kMiB, &kOnDevice, 0), CUDA_ERROR_OUT_OF_MEMORY);
  handle = Created(kPage);
  EXPECT_EQ(cuMemMap(range_ + 512, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(range_, 2 * kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(range_ + 4 * kPage, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemMap(range_, kPage, 0, handle, 0));
  EXPECT_EQ(cuMemMap(range_, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(range_, 2 * kPage, &kReadWrite, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(range_, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(range_, 4 * kPage), CUDA_ERROR_INVALID_VALUE) << "while something is mapped";
  OK(cuMemRelease(handle));
  OK(cuMemUnmap(range_, kPage));
}

TEST_F(VirtualMemory, ItIsNoMatterOfCuMemFreeOrIpc) {
  Back(0);
  EXPECT_EQ(cuMemFree(range_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(range_, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, range_), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range_, kPage));
}

// Which is said of memory as it was asked for; cuMemAlloc's needs no word.
TEST_F(VirtualMemory, MemoryForDecompressionIsWhatWasAskedForAsSuch) {
  const auto capable = [](CUdeviceptr memory) {
    unsigned value = 77;
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, memory),
              CUDA_SUCCESS);
    return value;
  };
  CUmemAllocationProp asked_for = kOnDevice;
  asked_for.allocFlags.usage = CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr plain = 0;
  OK(cuMemCreate(&handle, kPage, &asked_for, 0));
  OK(cuMemMap(range_, kPage, 0, handle, 0));
  OK(cuMemRelease(handle));
  Back(1);
  OK(cuMemAlloc(&plain, 512));
  EXPECT_EQ(capable(range_), 1U);
  EXPECT_EQ(capable(range_ + kPage), 0U);
  EXPECT_EQ(capable(plain), 1U);
  OK(cuMemFree(plain));
  OK(cuMemUnmap(range_, 2 * kPage));
}

TEST_F(VirtualMemory, TheGranularityIsAPage) {
  size_t granularity = 0;
  OK(cuMemGetAllocationGranularity(&granularity, &kOnDevice, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(granularity, kPage);
}

}  // namespace
}  // namespace simtest
