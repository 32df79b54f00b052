// Streams, events, host functions and kernels.
#include "tests/simcuda/runtime/driver.h"

using simrt::Driver;
using simrt::WithContext;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  return WithContext(
      [&](const Driver& driver) { return driver.cuStreamCreateWithPriority(pStream, flags, priority); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return WithContext([&](const Driver& driver) { return driver.cuStreamCreate(pStream, flags); });
}

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return WithContext([&](const Driver& driver) { return driver.cuStreamDestroy(stream); });
}

SIM_BOTH(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), {
  return WithContext([&](const Driver& driver) { return driver.cuStreamSynchronize[form](stream); });
})

SIM_BOTH(cudaStreamQuery, _ptsz, (cudaStream_t stream),
         { return WithContext([&](const Driver& driver) { return driver.cuStreamQuery[form](stream); }); })

SIM_BOTH(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), {
  return WithContext(
      [&](const Driver& driver) { return driver.cuStreamWaitEvent[form](stream, event, flags); });
})

SIM_BOTH(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t fn, void* userData), {
  return WithContext(
      [&](const Driver& driver) { return driver.cuLaunchHostFunc[form](stream, fn, userData); });
})

// There is no device code for `func` here; the driver says that kernels do not run.
SIM_BOTH(cudaLaunchKernel, _ptsz,
         (const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem, cudaStream_t stream),
         {
           return WithContext([&](const Driver& driver) {
             return driver.cuLaunchKernel[form](nullptr, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
                                                blockDim.y, blockDim.z, static_cast<unsigned>(sharedMem),
                                                stream, args, nullptr);
           });
         })

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return WithContext([&](const Driver& driver) { return driver.cuEventCreate(event, flags); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return WithContext([&](const Driver& driver) { return driver.cuEventDestroy(event); });
}

SIM_BOTH(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), {
  return WithContext([&](const Driver& driver) { return driver.cuEventRecord[form](event, stream); });
})

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return WithContext([&](const Driver& driver) { return driver.cuEventQuery(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return WithContext([&](const Driver& driver) { return driver.cuEventSynchronize(event); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return WithContext([&](const Driver& driver) { return driver.cuEventElapsedTime(ms, start, end); });
}
