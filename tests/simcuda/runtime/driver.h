// The driver, as the runtime reaches it: dlopen, one dlsym, everything else by cuGetProcAddress_v2.
#pragma once

#pragma GCC visibility push(default)
#include "tests/simcuda/include/cuda_runtime_api.h"
#pragma GCC visibility pop
#include "tests/simcuda/include/cuda.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace simrt {

// A member for each function that lookups.def keeps, under the function's name as cuda.h has it; both forms
// as a pair.
struct Driver {
#define SIM_ASK(name, version)
#define SIM_LOOKUP(name, version) decltype(&::name) name = nullptr;
#define SIM_LOOKUP_BOTH(name, version) decltype(&::name) name[2] = {};
#include "tests/simcuda/runtime/lookups.def"
#undef SIM_ASK
#undef SIM_LOOKUP
#undef SIM_LOOKUP_BOTH
};

// Opened and initialised by the first call; null, with the reason, if that failed.
const Driver* TheDriver(cudaError_t* error);

// What this thread's last failing call answered. Every call passes through here.
cudaError_t Remember(cudaError_t error);
inline cudaError_t Remember(CUresult error) { return Remember(static_cast<cudaError_t>(error)); }

// The device that this thread chose.
int& ThisDevice();
// Makes that device's primary context current, unless the thread has a context already.
CUresult EnsureContext(const Driver& driver);
// Makes it current in any case.
CUresult UsePrimary(const Driver& driver, int device, CUcontext* context);
// The context of the device is gone; it is made again when it is needed.
void ForgetPrimary(int device);

// A call that needs the driver but no context.
template <typename Body>
cudaError_t WithDriver(Body&& body) {
  cudaError_t error = cudaSuccess;
  const Driver* driver = TheDriver(&error);
  return driver == nullptr ? Remember(error) : Remember(body(*driver));
}

// A call that needs a context.
template <typename Body>
cudaError_t WithContext(Body&& body) {
  return WithDriver([&](const Driver& driver) {
    CUresult error = EnsureContext(driver);
    return error == CUDA_SUCCESS ? body(driver) : error;
  });
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// An allocation of the driver's, answered the runtime's way: nothing asked for, nothing given.
template <typename Allocate>
CUresult Give(void** pointer, size_t size, Allocate&& allocate) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = nullptr;
  if (size == 0) return CUDA_SUCCESS;
  CUdeviceptr address = 0;
  CUresult error = allocate(&address);
  if (error == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return error;
}

}  // namespace simrt

// Defines a function and its form for per-thread default streams; in the body, `form` picks from a pair of
// Driver.
#define SIM_BOTH(function, suffix, parameters, ...)    \
  SIM_EXPORT cudaError_t function parameters {         \
    constexpr int form = 0;                            \
    __VA_ARGS__                                        \
  }                                                    \
  SIM_EXPORT cudaError_t function##suffix parameters { \
    constexpr int form = 1;                            \
    __VA_ARGS__                                        \
  }
