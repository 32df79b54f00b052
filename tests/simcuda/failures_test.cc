// Injected failures: the only way to see what a program does when a device runs out in the middle of things.
// Run with SIMCUDA_FAIL=cuMemAlloc:2,cuMemAllocAsync:1:CUDA_ERROR_NOT_SUPPORTED,cuStreamCreate:2+:999.
#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

using Failures = Machine;

TEST_F(Failures, TheNthCallAlone) {
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAlloc(&a, 1));
  EXPECT_EQ(cuMemAlloc(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc(&b, 1));
}

TEST_F(Failures, WithAnErrorOfOnesChoice) {
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAllocAsync(&memory, 1, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMemAllocAsync(&memory, 1, nullptr));
  OK(cuMemFreeAsync(memory, nullptr));
}

TEST_F(Failures, FromTheNthCallOn) {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
}

TEST(FailuresDeathTest, WhatIsNotUnderstoodStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto start = [] {
    setenv("SIMCUDA_FAIL", "cuMemAlloc:zero", 1);
    cuInit(0);
  };
  EXPECT_DEATH(start(), "SIMCUDA_FAIL=cuMemAlloc:zero is not understood");
}

}  // namespace
}  // namespace simtest
