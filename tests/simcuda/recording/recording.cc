#include "tests/simcuda/recording/recording.h"

#include "tests/simcuda/include/cuda.h"

namespace {

std::vector<Asked>& Asks() {
  static std::vector<Asked> asks;
  return asks;
}

}  // namespace

const std::vector<Asked>& AllAsked() { return Asks(); }

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* symbolStatus) {
  Asks().push_back({symbol, cudaVersion, flags});
  *pfn = nullptr;
  *symbolStatus = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}
