// What a driver takes for a program's variables comes from the same memory as all else: an interposer that holds what
// is left must give way to it.
#include <cstring>
#include <string>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

constexpr size_t kDevice = 64 * kMiB;

class Modules : public Machine {
 protected:
  static std::string Text(const std::string& variables) {
    return ".version 7.8\n.target sm_80\n.address_size 64\n" + variables;
  }
  static std::string Table(size_t bytes) {
    return ".visible .global .align 8 .b8 table[" + std::to_string(bytes) + "];\n";
  }
  static CUresult Load(CUmodule* module, const std::string& text) {
    return cuModuleLoadData(module, text.c_str());
  }
};

TEST_F(Modules, TakeMemoryUntilTheyAreUnloaded) {
  CUmodule module = nullptr;
  CUmodule none = nullptr;
  OK(Load(&module, Text(Table(3 * kMiB) + Table(2 * kMiB))));
  EXPECT_EQ(simPhysicalBytes(0), 6 * kMiB);
  OK(Load(&none, Text("")));
  EXPECT_EQ(simPhysicalBytes(0), 6 * kMiB);
  OK(cuModuleUnload(module));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleUnload(none));
}

TEST_F(Modules, TellHowMuchOfTheLogWasFilled) {
  const std::string text = Text(Table(3 * kMiB));
  char log[64] = "";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  OK(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values));
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), strlen(log) + 1);
  EXPECT_GT(strlen(log), 0U);
  OK(cuModuleUnload(module));
  const CUdeviceptr block = Allocated(kDevice - 2 * kMiB);
  EXPECT_EQ(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), 0U);
  OK(cuMemFree(block));
}

TEST_F(Modules, DoNotFitWhereThereIsNoMemory) {
  CUmodule module = nullptr;
  const CUdeviceptr block = Allocated(kDevice - 4 * kMiB);
  EXPECT_EQ(Load(&module, Text(Table(6 * kMiB))), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFree(block));
  OK(Load(&module, Text(Table(6 * kMiB))));
}

TEST_F(Modules, APoolGivesWay) {
  CUmodule module = nullptr;
  CUdeviceptr block = 0;
  CUmemoryPool pool = nullptr;
  uint64_t none = 0;
  uint64_t all = UINT64_MAX;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  OK(cuMemAllocAsync(&block, kDevice - 4 * kMiB, nullptr));
  OK(cuMemFreeAsync(block, nullptr));
  OK(cuStreamSynchronize(nullptr));
  EXPECT_GE(simPhysicalBytes(0), kDevice - 4 * kMiB);
  EXPECT_EQ(Load(&module, Text(Table(6 * kMiB))), CUDA_SUCCESS);
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
}

TEST_F(Modules, EndWithTheirContext) {
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(Load(&module, Text(Table(kMiB))));
  OK(cuCtxDestroy(other));
  EXPECT_EQ(simPhysicalBytes(0), 0U);
  OK(cuCtxSetCurrent(context_));
}

TEST_F(Modules, CodeIsRefused) {
  testing::internal::CaptureStderr();
  CUmodule module = nullptr;
  EXPECT_EQ(Load(&module, Text(".visible .entry nothing() {\n  ret;\n}\n")), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Load(&module, "\177ELF"), CUDA_ERROR_NOT_SUPPORTED);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("kernels do not run here"), std::string::npos);
  EXPECT_NE(said.find("images of modules that are not PTX"), std::string::npos);
}

}  // namespace
}  // namespace simtest
