// What the tests of the simulated device share: a context to work in, and short names for what they all do.
#pragma once

#include <gtest/gtest.h>

#include "tests/simcuda/include/simcuda.h"

#define OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

namespace simtest {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 2 * kMiB;

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context_, 0));
    OK(cuCtxSetCurrent(context_));
    corrupted_ = simCorruptedBytes();
    illegal_ = simIllegalAccesses();
  }

  // Every test leaves the device as it found it.
  void TearDown() override {
    EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(simPhysicalBytes(0), 0U) << "memory left behind";
  }

  CUdeviceptr Allocated(size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    return memory;
  }
  CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  CUevent NewEvent() {
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
  }
  // Work queued on `later` from now on runs after what is on `earlier` by now.
  void After(CUstream earlier, CUstream later) {
    CUevent event = NewEvent();
    OK(cuEventRecord(event, earlier));
    OK(cuStreamWaitEvent(later, event, 0));
    OK(cuEventDestroy(event));
  }
  uint64_t Corrupted() const { return simCorruptedBytes() - corrupted_; }
  uint64_t Illegal() const { return simIllegalAccesses() - illegal_; }

  CUcontext context_ = nullptr;

 private:
  uint64_t corrupted_ = 0;
  uint64_t illegal_ = 0;
};

}  // namespace simtest
