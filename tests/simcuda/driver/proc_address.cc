// cuGetProcAddress.
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "tests/simcuda/driver/config.h"
#include "tests/simcuda/driver/function_table.h"

namespace {

using sim::FunctionRow;

struct Found {
  const FunctionRow* row = nullptr;
  bool known = false;  // if perhaps not in this version
};

// The latest form of `name` that a program built for `version` may call.
Found Find(const char* name, int version, bool per_thread) {
  Found found;
  for (size_t i = 0; i < sim::kFunctionCount; ++i) {
    const FunctionRow& row = sim::kFunctions[i];
    if (row.per_thread != per_thread || strcmp(row.name, name) != 0) continue;
    found.known = true;
    if (row.since <= version && (found.row == nullptr || found.row->since < row.since)) found.row = &row;
  }
  return found;
}

// Of a later CUDA, to show what becomes of programs that ask for that: under a name of now another function. A minor release
// may do that: cuLaunchHostFunc is another one from 13.1 on.
constexpr int kLaterVersion = 13090;
CUresult LaterMemFreeAsync(CUdeviceptr block, CUstream stream) { return cuMemFreeAsync(block, stream); }

void SayOnce(const char* name) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (sim::TheConfig().verbose && said.insert(name).second) sim::Say(std::string("not simulated: ") + name);
}

}  // namespace

// Needs neither a device nor the lock: it works in a forked child, and from within a host function.
CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* symbolStatus) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (cudaVersion > sim::TheConfig().cuda_version || flags > kPerThread) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult ignored;
  if (symbolStatus == nullptr) symbolStatus = &ignored;
  *pfn = nullptr;
  *symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;
  if (*symbol == 0) return CUDA_SUCCESS;  // how a runtime asks whether lookups work at all
  Found found = flags == kPerThread ? Find(symbol, cudaVersion, true) : Found{};
  if (found.row == nullptr) {
    Found plain = Find(symbol, cudaVersion, false);
    found = {plain.row, plain.known || found.known};
  }
  if (cudaVersion >= kLaterVersion && strcmp(symbol, "cuMemFreeAsync") == 0) {
    *pfn = reinterpret_cast<void*>(&LaterMemFreeAsync);
    return CUDA_SUCCESS;
  }
  if (found.row != nullptr) {
    *pfn = reinterpret_cast<void*>(found.row->address);
    return CUDA_SUCCESS;
  }
  *symbolStatus =
      found.known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (!found.known) SayOnce(symbol);
  return CUDA_ERROR_NOT_FOUND;
}
