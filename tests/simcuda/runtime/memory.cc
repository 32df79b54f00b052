// Memory, copies and sets.
#include <cstring>

#include "tests/simcuda/runtime/driver.h"

using simrt::Address;
using simrt::Driver;
using simrt::Give;
using simrt::WithContext;

namespace {

bool IsDirection(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

}  // namespace

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return WithContext([&](const Driver& driver) { return driver.cuMemGetInfo(free, total); });
}

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return WithContext([&](const Driver& driver) {
    return Give(devPtr, size, [&](CUdeviceptr* address) { return driver.cuMemAlloc(address, size); });
  });
}

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  return WithContext([&](const Driver& driver) {
    return Give(devPtr, width * height, [&](CUdeviceptr* address) {
      return driver.cuMemAllocPitch(address, pitch, width, height, 4);
    });
  });
}

cudaError_t cudaFree(void* devPtr) {
  return WithContext([&](const Driver& driver) { return driver.cuMemFree(Address(devPtr)); });
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return WithContext([&](const Driver& driver) { return driver.cuMemAllocHost(ptr, size); });
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  return WithContext([&](const Driver& driver) { return driver.cuMemHostAlloc(pHost, size, flags); });
}

cudaError_t cudaFreeHost(void* ptr) {
  return WithContext(
      [&](const Driver& driver) { return ptr == nullptr ? CUDA_SUCCESS : driver.cuMemFreeHost(ptr); });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  return WithContext([&](const Driver& driver) {
    if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned type = 0;
    int device = CU_DEVICE_INVALID;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &device};
    CUresult error = driver.cuPointerGetAttributes(2, asked, answers, Address(ptr));
    if (error != CUDA_SUCCESS) return error;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = static_cast<cudaMemoryType>(type);  // 0: nobody knows it; 1: host; 2: device
    attributes->device = device;
    if (type != 0) attributes->devicePointer = const_cast<void*>(ptr);
    if (type == CU_MEMORYTYPE_HOST) attributes->hostPointer = const_cast<void*>(ptr);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  return WithContext([&](const Driver& driver) {
    CUipcMemHandle found;
    CUresult error = driver.cuIpcGetMemHandle(&found, Address(devPtr));
    if (error == CUDA_SUCCESS) memcpy(handle, &found, sizeof found);
    return error;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  return WithContext([&](const Driver& driver) {
    CUipcMemHandle opened;
    memcpy(&opened, &handle, sizeof opened);
    return Give(devPtr, 1,
                [&](CUdeviceptr* address) { return driver.cuIpcOpenMemHandle(address, opened, flags); });
  });
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  return WithContext([&](const Driver& driver) { return driver.cuIpcCloseMemHandle(Address(devPtr)); });
}

SIM_BOTH(cudaMemcpy, _ptds, (void* dst, const void* src, size_t count, enum cudaMemcpyKind kind), {
  if (!IsDirection(kind)) return simrt::Remember(cudaErrorInvalidMemcpyDirection);
  return WithContext(
      [&](const Driver& driver) { return driver.cuMemcpy[form](Address(dst), Address(src), count); });
})

SIM_BOTH(cudaMemcpyAsync, _ptsz,
         (void* dst, const void* src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream), {
           if (!IsDirection(kind)) return simrt::Remember(cudaErrorInvalidMemcpyDirection);
           return WithContext([&](const Driver& driver) {
             return driver.cuMemcpyAsync[form](Address(dst), Address(src), count, stream);
           });
         })

SIM_BOTH(cudaMemset, _ptds, (void* devPtr, int value, size_t count), {
  return WithContext([&](const Driver& driver) {
    return driver.cuMemsetD8[form](Address(devPtr), static_cast<unsigned char>(value), count);
  });
})

SIM_BOTH(cudaMemsetAsync, _ptsz, (void* devPtr, int value, size_t count, cudaStream_t stream), {
  return WithContext([&](const Driver& driver) {
    return driver.cuMemsetD8Async[form](Address(devPtr), static_cast<unsigned char>(value), count, stream);
  });
})
