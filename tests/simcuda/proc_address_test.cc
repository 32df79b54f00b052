// cuGetProcAddress answers by exact name, version and flags; what an interposer swaps depends on all three.
#include <dlfcn.h>

#include "tests/simcuda/machine.h"

// As an interposer has it. The driver's own calls, and its answers to lookups, must not end here.
CUresult cuStreamCreateWithPriority(CUstream*, unsigned int, int) { return CUDA_ERROR_UNKNOWN; }

namespace simtest {
namespace {

struct Answer {
  CUresult result;
  void* function;
  CUdriverProcAddressQueryResult status;
};

Answer Ask(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  Answer answer = {CUDA_SUCCESS, nullptr, CU_GET_PROC_ADDRESS_SUCCESS};
  answer.result = cuGetProcAddress(name, &answer.function, version, flags, &answer.status);
  return answer;
}

void* Symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

TEST(ProcAddress, TheEmptyNameAtVersionZeroSucceeds) { EXPECT_EQ(Ask("", 0).result, CUDA_SUCCESS); }

TEST(ProcAddress, WorksBeforeCuInit) { EXPECT_EQ(Ask("cuInit", 2000).function, Symbol("cuInit")); }

TEST(ProcAddress, TheVersionChoosesTheForm) {
  EXPECT_EQ(Ask("cuGetProcAddress", 11030).function, Symbol("cuGetProcAddress"));
  EXPECT_EQ(Ask("cuGetProcAddress", 12000).function, Symbol("cuGetProcAddress_v2"));
  EXPECT_EQ(Ask("cuMemAlloc", 3020).function, Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Ask("cuMemAlloc", 13000).function, Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Ask("cuStreamDestroy", 3020).function, Symbol("cuStreamDestroy"));
  EXPECT_EQ(Ask("cuStreamDestroy", 4000).function, Symbol("cuStreamDestroy_v2"));
  EXPECT_EQ(Ask("cuCtxCreate", 11040).function, Symbol("cuCtxCreate_v3"));
}

TEST(ProcAddress, TheFlagChoosesTheDefaultStream) {
  EXPECT_EQ(Ask("cuMemAllocAsync", 11020).function, Symbol("cuMemAllocAsync"));
  EXPECT_EQ(Ask("cuMemAllocAsync", 11020, 1).function, Symbol("cuMemAllocAsync"));
  EXPECT_EQ(Ask("cuMemAllocAsync", 11020, 2).function, Symbol("cuMemAllocAsync_ptsz"));
  EXPECT_EQ(Ask("cuMemcpyHtoD", 7000, 2).function, Symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Ask("cuMemAlloc", 3020, 2).function, Symbol("cuMemAlloc_v2")) << "which has one form only";
  EXPECT_NE(Symbol("cuMemAllocAsync_ptsz"), nullptr);
}

TEST(ProcAddress, NamesAreExact) {
  for (const char* name : {"cuMemAlloc_v2", "cuMemAllo", "cuMemAllocX", "cuMemAllocAsync_ptsz", "CUINIT"}) {
    Answer answer = Ask(name, 13000);
    EXPECT_EQ(answer.result, CUDA_ERROR_NOT_FOUND) << name;
    EXPECT_EQ(answer.function, nullptr);
    EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  }
}

TEST(ProcAddress, AVersionFromBeforeTheFunction) {
  Answer answer = Ask("cuMemAllocAsync", 11010);
  EXPECT_EQ(answer.result, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(ProcAddress, AVersionFromAfterTheDriver) {
  EXPECT_EQ(Ask("cuInit", 14000).result, CUDA_ERROR_INVALID_VALUE);
}

TEST(ProcAddress, WhatIsNotSimulatedIsNamedOnce) {
  testing::internal::CaptureStderr();
  Ask("cuArrayCreate", 13000);
  Ask("cuArrayCreate", 13000);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "simcuda: not simulated: cuArrayCreate\n");
}

TEST(ProcAddress, ThereAreNoExportTables) {
  const void* table = &table;
  CUuuid any = {};
  EXPECT_EQ(cuGetExportTable(&table, &any), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
}

TEST(ProcAddress, AnotherLibrarysDefinitionIsNotTheDrivers) {
  void* interposed = reinterpret_cast<void*>(&cuStreamCreateWithPriority);
  ASSERT_EQ(Symbol("cuStreamCreateWithPriority"), interposed);
  EXPECT_NE(Ask("cuStreamCreateWithPriority", 5050).function, interposed);
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED) << "and not what the interposer says";
}

TEST(ProcAddress, NothingWorksBeforeCuInit) {
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace
}  // namespace simtest
