// Several devices, and what the library says of itself. Run with SIMCUDA_DEVICES=2 and SIMCUDA_VMM=0.
#include <cstring>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

class Devices : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    OK(cuDevicePrimaryCtxRetain(&other_, 1));
  }
  void TearDown() override {
    OK(cuDevicePrimaryCtxReset(1));
    OK(cuDevicePrimaryCtxRelease(1));
    Machine::TearDown();
  }
  CUdeviceptr OnOther(size_t bytes) {
    EXPECT_EQ(cuCtxPushCurrent(other_), CUDA_SUCCESS);
    CUdeviceptr memory = Allocated(bytes);
    EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    return memory;
  }

  CUcontext other_ = nullptr;
};

TEST_F(Devices, AreCountedAndNamed) {
  int count = 0;
  char name[64] = {};
  OK(cuDeviceGetCount(&count));
  OK(cuDeviceGetName(name, sizeof name, 1));
  EXPECT_EQ(count, 2);
  EXPECT_STREQ(name, "Simulated device 1");
  EXPECT_EQ(cuDeviceGetName(name, sizeof name, 2), CUDA_ERROR_INVALID_DEVICE);
  CUuuid a, b;
  OK(cuDeviceGetUuid(&a, 0));
  OK(cuDeviceGetUuid(&b, 1));
  EXPECT_NE(memcmp(&a, &b, sizeof a), 0);
}

TEST_F(Devices, HaveMemoryOfTheirOwn) {
  OnOther(kPage);
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  EXPECT_EQ(simPhysicalBytes(1), kPage);
}

TEST_F(Devices, CopiesReachBoth) {
  CUdeviceptr here = Allocated(100), there = OnOther(100);
  OK(simFill(here, 100, 1, nullptr));
  OK(cuMemcpyPeer(there, other_, here, context_, 100));
  OK(cuCtxSynchronize());
  OK(cuCtxPushCurrent(other_));
  OK(simVerify(there, 100, 1, nullptr));
  OK(cuCtxSynchronize());
  OK(cuCtxPopCurrent(nullptr));
  EXPECT_EQ(Corrupted(), 0U);
}

TEST_F(Devices, KernelsReachAPeerThatWasEnabled) {
  CUdeviceptr there = OnOther(100);
  OK(cuCtxEnablePeerAccess(other_, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  OK(simFill(there, 100, 1, nullptr));
  OK(cuCtxSynchronize());
  OK(cuCtxDisablePeerAccess(other_));
  OK(simFill(there, 100, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Devices, EventsOrderStreamsOfBoth) {
  CUdeviceptr here = Allocated(4096);
  CUstream stream = NewStream();
  OK(cuCtxPushCurrent(other_));
  OK(cuCtxEnablePeerAccess(context_, 0));
  CUstream there = NewStream();
  OK(cuCtxPopCurrent(nullptr));
  for (unsigned long long seed = 1; seed <= 50; ++seed) {
    simReseed(seed);
    OK(simFill(here, 4096, seed, stream));
    CUevent event = NewEvent();
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(there, event, 0));
    OK(simVerify(here, 4096, seed, there));
    OK(cuStreamSynchronize(there));
  }
  EXPECT_EQ(Corrupted(), 0U);
  CUevent event = NewEvent();
  EXPECT_EQ(cuEventRecord(event, there), CUDA_ERROR_INVALID_HANDLE) << "an event of the other context";
}

TEST_F(Devices, APoolIsOpenedToAPeerByItself) {
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 1));
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemPoolSetAccess(pool, &access, 1));
  CUdeviceptr memory = 0;
  OK(cuMemAllocFromPoolAsync(&memory, 100, pool, nullptr));
  OK(simFill(memory, 100, 1, nullptr));
  OK(cuMemFreeAsync(memory, nullptr));
  OK(cuCtxSynchronize());
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(cuMemPoolSetAccess(pool, &access, 1));
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  OK(cuMemPoolGetAccess(&flags, pool, &access.location));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_F(Devices, WithoutVirtualMemoryWhereTheSettingSaysSo) {
  int supported = 1;
  OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  EXPECT_EQ(supported, 0);
  CUdeviceptr range = 0;
  EXPECT_EQ(cuMemAddressReserve(&range, kPage, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Devices, ErrorsHaveNames) {
  const char* text = nullptr;
  OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simtest
