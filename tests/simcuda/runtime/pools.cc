// Stream-ordered memory and its pools.
#include <cstring>
#include <vector>

#include "tests/simcuda/runtime/driver.h"

using simrt::Address;
using simrt::Driver;
using simrt::Give;
using simrt::WithContext;
using simrt::WithDriver;

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

namespace {

CUmemPool_attribute Attribute(cudaMemPoolAttr attribute) {
  return static_cast<CUmemPool_attribute>(attribute);
}

}  // namespace

SIM_BOTH(cudaMallocAsync, _ptsz, (void** devPtr, size_t size, cudaStream_t hStream), {
  return WithContext([&](const Driver& driver) {
    return Give(devPtr, size, [&](CUdeviceptr* p) { return driver.cuMemAllocAsync[form](p, size, hStream); });
  });
})

SIM_BOTH(cudaMallocFromPoolAsync, _ptsz,
         (void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream), {
           return WithContext([&](const Driver& driver) {
             return Give(ptr, size, [&](CUdeviceptr* p) {
               return driver.cuMemAllocFromPoolAsync[form](p, size, memPool, stream);
             });
           });
         })

SIM_BOTH(cudaFreeAsync, _ptsz, (void* devPtr, cudaStream_t hStream), {
  return WithContext(
      [&](const Driver& driver) { return driver.cuMemFreeAsync[form](Address(devPtr), hStream); });
})

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  return WithDriver([&](const Driver& driver) { return driver.cuDeviceGetDefaultMemPool(memPool, device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  return WithDriver([&](const Driver& driver) { return driver.cuDeviceGetMemPool(memPool, device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  return WithDriver([&](const Driver& driver) { return driver.cuDeviceSetMemPool(device, memPool); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const struct cudaMemPoolProps* poolProps) {
  return WithDriver([&](const Driver& driver) {
    if (poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps properties;
    memcpy(&properties, poolProps, sizeof properties);
    return driver.cuMemPoolCreate(memPool, &properties);
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  return WithDriver([&](const Driver& driver) { return driver.cuMemPoolDestroy(memPool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  return WithDriver([&](const Driver& driver) { return driver.cuMemPoolTrimTo(memPool, minBytesToKeep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  return WithDriver(
      [&](const Driver& driver) { return driver.cuMemPoolSetAttribute(memPool, Attribute(attr), value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  return WithDriver(
      [&](const Driver& driver) { return driver.cuMemPoolGetAttribute(memPool, Attribute(attr), value); });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc* descList,
                                 size_t count) {
  return WithDriver([&](const Driver& driver) {
    std::vector<CUmemAccessDesc> descriptions(count);
    if (count > 0) memcpy(descriptions.data(), descList, count * sizeof(CUmemAccessDesc));
    return driver.cuMemPoolSetAccess(memPool, descriptions.data(), count);
  });
}
