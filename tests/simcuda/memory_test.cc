// Plain memory: sizes, errors and the capacity are what programs are judged by, so they must be as
// documented.
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

using Memory = Machine;

TEST_F(Memory, RoundTrip) {
  CUdeviceptr memory = Allocated(5);
  char seen[5] = {};
  OK(cuMemcpyHtoD(memory, "four", 5));
  OK(cuMemcpyDtoH(seen, memory, 5));
  EXPECT_STREQ(seen, "four");
}

TEST_F(Memory, AddressesAreAlignedAndApart) {
  std::set<CUdeviceptr> seen;
  for (size_t bytes : {1, 511, 512, 513, 4096}) {
    CUdeviceptr memory = Allocated(bytes);
    EXPECT_EQ(memory % 512, 0U);
    for (CUdeviceptr other : seen) EXPECT_GE(memory > other ? memory - other : other - memory, 512U);
    seen.insert(memory);
  }
}

TEST_F(Memory, TheCapacityIsExact) {
  size_t free = 0, total = 0;
  OK(cuMemGetInfo(&free, &total));
  ASSERT_EQ(free, total);
  CUdeviceptr all = Allocated(total);
  OK(cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, 0U);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFree(all));
  OK(cuMemAlloc(&more, 1));
}

TEST_F(Memory, FragmentsAreNoObstacle) {
  size_t free = 0, total = 0;
  OK(cuMemGetInfo(&free, &total));
  std::vector<CUdeviceptr> eighths;
  for (int i = 0; i < 8; ++i) eighths.push_back(Allocated(total / 8));
  for (int i = 0; i < 8; i += 2) OK(cuMemFree(eighths[static_cast<size_t>(i)]));
  Allocated(total / 2);
}

TEST_F(Memory, MoreThanTheDeviceHas) {
  CUdeviceptr memory = 0;
  for (size_t bytes : {~size_t{0}, size_t{1} << 50})
    EXPECT_EQ(cuMemAlloc(&memory, bytes), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Memory, ArgumentsThatMakeNoSense) {
  CUdeviceptr memory = 0;
  memory = 77;
  EXPECT_EQ(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory, 0U);
  EXPECT_EQ(cuMemAlloc(nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
  memory = Allocated(1024);
  EXPECT_EQ(cuMemFree(memory + 512), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(0));
  OK(cuMemFree(memory));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, IsFreedWithoutAContext) {
  CUdeviceptr memory = Allocated(1024);
  OK(cuCtxSetCurrent(nullptr));
  OK(cuMemFree(memory));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxSetCurrent(context_));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
}

TEST_F(Memory, PitchKeepsRowsAligned) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  OK(cuMemAllocPitch(&memory, &pitch, 700, 3, 4));
  EXPECT_EQ(pitch, 1024U);
  size_t size = 0;
  OK(cuMemGetAddressRange(nullptr, &size, memory));
  EXPECT_EQ(size, 3 * pitch);
}

TEST_F(Memory, AThreadWithoutAContextCanDoNothing) {
  std::thread([] {
    CUdeviceptr memory = 0;
    CUstream stream = nullptr;
    EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAllocAsync(&memory, 1, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_F(Memory, AStreamNamesItsContext) {
  CUstream stream = NewStream();
  std::thread([&] {
    CUdeviceptr memory = 0;
    OK(cuMemAllocAsync(&memory, 1, stream));
    OK(cuMemFreeAsync(memory, stream));
    OK(cuStreamSynchronize(stream));
  }).join();
}

TEST_F(Memory, AfterAResetNothingOfBeforeIsLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CUdeviceptr memory = Allocated(kMiB);
  CUstream stream = NewStream();
  OK(cuDevicePrimaryCtxReset(0));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuDevicePrimaryCtxRetain(&context_, 0));
  OK(cuCtxSetCurrent(context_));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_DEATH(cuStreamSynchronize(stream), "a stream or an event that has been destroyed");
  OK(cuDevicePrimaryCtxRelease(0));
}

TEST_F(Memory, AfterAResetMemoryOfPoolsIsLeft) {
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, kMiB, nullptr));
  OK(cuMemsetD8Async(memory, 7, kMiB, nullptr));
  OK(cuDevicePrimaryCtxReset(0));
  EXPECT_EQ(simPhysicalBytes(0), 2 * kMiB);
  OK(cuDevicePrimaryCtxRetain(&context_, 0));
  OK(cuCtxSetCurrent(context_));
  unsigned char seen = 0;
  OK(cuMemcpyDtoH(&seen, memory + kMiB - 1, 1));
  EXPECT_EQ(seen, 7);
  OK(cuMemFreeAsync(memory, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  OK(cuDevicePrimaryCtxRelease(0));
}

TEST_F(Memory, AContextThatIsDestroyedTakesItsMemoryAlong) {
  CUcontext own = nullptr;
  OK(cuCtxCreate(&own, nullptr, 0, 0));
  Allocated(kMiB);
  OK(cuCtxDestroy(own));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  CUcontext current = nullptr;
  OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
}

TEST_F(Memory, APointerTellsWhatItIs) {
  CUdeviceptr memory = Allocated(1000);
  unsigned type = 0, capable = 0;
  CUcontext context = nullptr;
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 999));
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
  OK(cuMemGetAddressRange(&base, &size, memory + 500));
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(context, context_);
  EXPECT_EQ(capable, 1U);
  EXPECT_EQ(base, memory);
  EXPECT_EQ(size, 1000U);
  OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, memory));
  EXPECT_EQ(size, kPage) << "in whole pages";
  EXPECT_EQ(cuPointerGetAttribute(&size, static_cast<CUpointer_attribute>(9999), memory),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, APointerThatNobodyKnows) {
  int here = 0;
  unsigned type = 7;
  auto address = reinterpret_cast<CUdeviceptr>(&here);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
            CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute asked = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* answer = &type;
  OK(cuPointerGetAttributes(1, &asked, &answer, address));
  EXPECT_EQ(type, 0U);
  EXPECT_EQ(cuMemGetAddressRange(nullptr, nullptr, address), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Memory, WorkOutsideOfMemoryIsAnIllegalAccessThatSticks) {
  CUdeviceptr memory = Allocated(512);
  OK(simFill(memory + kPage, 512, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Illegal(), 1U);
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Memory, VerifyCountsTheBytesThatAreWrong) {
  CUdeviceptr memory = Allocated(1000);
  OK(simFill(memory, 1000, 1, nullptr));
  unsigned char byte = 0;
  OK(cuMemcpyDtoH(&byte, memory + 123, 1));
  OK(cuMemsetD8(memory + 123, static_cast<unsigned char>(byte + 1), 1));
  OK(simVerify(memory, 1000, 1, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 1U);
}

TEST_F(Memory, EagerWorkRunsAsItIsQueued) {
  CUdeviceptr memory = Allocated(512);
  OK(simFill(memory, 512, 1, NewStream()));
  EXPECT_EQ(simAllQueuedOperations(), 0U);
}

TEST_F(Memory, KernelsAreRefused) {
  testing::internal::CaptureStderr();
  CUresult answer = cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  EXPECT_EQ(answer, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("kernels do not run here"), std::string::npos);
}

TEST_F(Memory, TheHostMayNotTouchIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CUdeviceptr memory = Allocated(8);
  EXPECT_EXIT(*reinterpret_cast<volatile char*>(memory) = 1, testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace simtest
