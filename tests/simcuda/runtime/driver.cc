#include "tests/simcuda/runtime/driver.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace simrt {
namespace {

struct Opened {
  Driver driver;
  cudaError_t error = cudaSuccess;
};

using GetProcAddress = decltype(&cuGetProcAddress_v2);

template <typename Function>
void LookUp(GetProcAddress look_up, const char* name, int version, cuuint64_t flags, Function* function) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  if (look_up(name, &found, version, flags, &status) != CUDA_SUCCESS) found = nullptr;
  *function = reinterpret_cast<Function>(found);
}

// A driver that lacks a function is too old for this runtime.
template <typename Function>
bool LookUpAll(GetProcAddress look_up, const char* name, int version, Function* function) {
  LookUp(look_up, name, version, CU_GET_PROC_ADDRESS_DEFAULT, function);
  return *function != nullptr;
}

template <typename Function>
bool LookUpAll(GetProcAddress look_up, const char* name, int version, Function (*functions)[2]) {
  LookUp(look_up, name, version, CU_GET_PROC_ADDRESS_DEFAULT, &(*functions)[0]);
  LookUp(look_up, name, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &(*functions)[1]);
  return (*functions)[0] != nullptr && (*functions)[1] != nullptr;
}

bool Fill(GetProcAddress look_up, Driver* driver) {
  bool complete = true;
  void (*ignored)() = nullptr;
#define SIM_ASK(name, version) LookUp(look_up, name, version, CU_GET_PROC_ADDRESS_DEFAULT, &ignored);
#define SIM_LOOKUP(name, version) complete &= LookUpAll(look_up, #name, version, &driver->name);
#define SIM_LOOKUP_BOTH(name, version) complete &= LookUpAll(look_up, #name, version, &driver->name);
#include "tests/simcuda/runtime/lookups.def"
#undef SIM_ASK
#undef SIM_LOOKUP
#undef SIM_LOOKUP_BOTH
  return complete;
}

Opened Open() {
  Opened opened;
  opened.error = cudaErrorInsufficientDriver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return opened;
  auto look_up = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (look_up == nullptr || !Fill(look_up, &opened.driver)) return opened;
  opened.error = static_cast<cudaError_t>(opened.driver.cuInit(0));
  return opened;
}

struct Primary {
  CUcontext context = nullptr;
  bool valid = false;
};

struct Primaries {
  std::mutex mutex;
  std::map<int, Primary> by_device;
};

// Leaked: calls may come after the destructors.
Primaries& ThePrimaries() {
  static Primaries& primaries = *new Primaries;
  return primaries;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

const Driver* TheDriver(cudaError_t* error) {
  static const Opened& opened = *new Opened(Open());
  *error = opened.error;
  return opened.error == cudaSuccess ? &opened.driver : nullptr;
}

cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

int& ThisDevice() {
  thread_local int device = 0;
  return device;
}

CUresult UsePrimary(const Driver& driver, int device, CUcontext* context) {
  Primaries& primaries = ThePrimaries();
  std::lock_guard lock(primaries.mutex);
  Primary& primary = primaries.by_device[device];
  if (!primary.valid) {
    CUresult error = driver.cuDevicePrimaryCtxRetain(&primary.context, device);
    if (error != CUDA_SUCCESS) return error;
    primary.valid = true;
  }
  *context = primary.context;
  return driver.cuCtxSetCurrent(primary.context);
}

CUresult EnsureContext(const Driver& driver) {
  CUcontext current = nullptr;
  if (CUresult error = driver.cuCtxGetCurrent(&current); error != CUDA_SUCCESS) return error;
  if (current != nullptr) {
    int unused = 0;
    if (driver.cuCtxGetStreamPriorityRange(&unused, &unused) != CUDA_ERROR_CONTEXT_IS_DESTROYED)
      return CUDA_SUCCESS;
    ForgetPrimary(ThisDevice());  // whoever has ended it
  }
  return UsePrimary(driver, ThisDevice(), &current);
}

void ForgetPrimary(int device) {
  Primaries& primaries = ThePrimaries();
  std::lock_guard lock(primaries.mutex);
  primaries.by_device[device].valid = false;
}

}  // namespace simrt

cudaError_t cudaGetLastError() {
  cudaError_t error = simrt::last_error;
  simrt::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return simrt::last_error; }
