// The simulated runtime: error state, lazy contexts, and that what it does arrives at the driver.
#include <gtest/gtest.h>

#include <thread>

#include "tests/simcuda/include/cuda_runtime.h"
#include "tests/simcuda/include/simcuda.h"

#define FINE(call) ASSERT_EQ(call, cudaSuccess)

namespace {

CUdeviceptr Address(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

class Runtime : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    cudaGetLastError();
  }
};

TEST_F(Runtime, TheFirstCallMakesTheContext) {
  void* memory = nullptr;
  FINE(cudaMalloc(&memory, 100));
  unsigned flags = 0;
  int active = 0;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  FINE(cudaFree(memory));
}

TEST_F(Runtime, OutOfMemoryIsTheLastErrorOnce) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  FINE(cudaMalloc(&memory, 1));
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation) << "a success does not clear it";
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Runtime, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(12345)), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Runtime, NothingAskedForNothingGiven) {
  void* memory = &memory;
  FINE(cudaMalloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  FINE(cudaFree(nullptr));
}

TEST_F(Runtime, AfterAResetItStartsAgain) {
  void* memory = nullptr;
  FINE(cudaMalloc(&memory, 100));
  FINE(cudaDeviceReset());
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  FINE(cudaMalloc(&memory, 100));
  EXPECT_EQ(simPhysicalBytes(0), 512U);
}

// Also of a context that another has made current.
TEST_F(Runtime, AfterAResetItStartsAgainInAContextOfTheDriver) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  void* memory = nullptr;
  FINE(cudaMalloc(&memory, 100));
  FINE(cudaDeviceReset());
  size_t unused = 0;
  size_t total = 0;
  FINE(cudaMemGetInfo(&unused, &total));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

TEST_F(Runtime, CopiesGoThereAndBack) {
  void* memory = nullptr;
  char seen[6] = {};
  FINE(cudaMalloc(&memory, 6));
  FINE(cudaMemcpy(memory, "there", 6, cudaMemcpyHostToDevice));
  FINE(cudaMemcpy(seen, memory, 6, cudaMemcpyDefault));
  EXPECT_STREQ(seen, "there");
  EXPECT_EQ(cudaMemcpy(seen, memory, 6, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
}

TEST_F(Runtime, StreamOrderedMemory) {
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  void* memory = nullptr;
  unsigned long long used = 0;
  FINE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  FINE(cudaDeviceGetDefaultMemPool(&pool, 0));
  FINE(cudaMallocAsync(&memory, 1000, stream));
  EXPECT_EQ(simFill(Address(memory), 1000, 1, stream), CUDA_SUCCESS);
  FINE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 1024U);
  FINE(cudaFreeAsync(memory, stream));
  FINE(cudaStreamSynchronize(stream));
  EXPECT_EQ(simIllegalAccesses(), 0U);
}

TEST_F(Runtime, APointerThatNobodyKnowsIsNoError) {
  int here = 0;
  cudaPointerAttributes attributes;
  FINE(cudaPointerGetAttributes(&attributes, &here));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  void* memory = nullptr;
  FINE(cudaMalloc(&memory, 8));
  FINE(cudaPointerGetAttributes(&attributes, memory));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, memory);
}

TEST_F(Runtime, CaptureAndLaunch) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* memory = nullptr;
  FINE(cudaMalloc(&memory, 100));
  FINE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  FINE(cudaMemsetAsync(memory, 7, 100, stream));
  FINE(cudaStreamEndCapture(stream, &graph));
  FINE(cudaGraphInstantiate(&exec, graph, 0));
  FINE(cudaGraphLaunch(exec, stream));
  FINE(cudaStreamSynchronize(stream));
  char seen = 0;
  FINE(cudaMemcpy(&seen, memory, 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(seen, 7);
  FINE(cudaGraphExecDestroy(exec));
  FINE(cudaGraphDestroy(graph));
}

// An interposer's and a framework's last frees come from destructors, when much has ended already.
TEST(RuntimeDeathTest, CallsFromDestructorsAreSurvived) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  struct Late {
    ~Late() { cudaFree(memory); }
    void* memory = nullptr;
  };
  auto program = [] {
    static Late late;
    cudaMalloc(&late.memory, 100);
    exit(cudaGetLastError() == cudaSuccess ? 0 : 1);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "");
}

TEST_F(Runtime, KernelsAreRefused) {
  EXPECT_EQ(cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), cudaErrorNotSupported);
}

TEST_F(Runtime, ErrorsHaveTheRuntimesNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

}  // namespace
