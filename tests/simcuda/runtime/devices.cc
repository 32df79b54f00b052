// Devices and versions.
#include "tests/simcuda/runtime/driver.h"

using simrt::Driver;
using simrt::WithContext;
using simrt::WithDriver;

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  return WithDriver([&](const Driver& driver) { return driver.cuDriverGetVersion(driverVersion); });
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (runtimeVersion == nullptr) return simrt::Remember(cudaErrorInvalidValue);
  *runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}

SIM_BOTH(cudaGetDriverEntryPointByVersion, _ptsz,
         (const char* symbol, void** funcPtr, unsigned int cudaVersion, unsigned long long flags,
          enum cudaDriverEntryPointQueryResult* driverStatus),
         {
           return WithDriver([&](const Driver& driver) {
             if (form == 1 && flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
             auto version = static_cast<int>(cudaVersion);
             CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
             CUresult error = driver.cuGetProcAddress(symbol, funcPtr, version, flags, &status);
             if (driverStatus != nullptr)
               *driverStatus = static_cast<cudaDriverEntryPointQueryResult>(status);
             return error == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : error;  // the status tells
           });
         })

cudaError_t cudaGetDeviceCount(int* count) {
  return WithDriver([&](const Driver& driver) { return driver.cuDeviceGetCount(count); });
}

cudaError_t cudaSetDevice(int device) {
  return WithDriver([&](const Driver& driver) {
    CUdevice handle = 0;
    if (CUresult error = driver.cuDeviceGet(&handle, device); error != CUDA_SUCCESS) return error;
    simrt::ThisDevice() = device;
    CUcontext context = nullptr;
    return simrt::UsePrimary(driver, device, &context);
  });
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return simrt::Remember(cudaErrorInvalidValue);
  *device = simrt::ThisDevice();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  return WithDriver([&](const Driver& driver) {
    return driver.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attr), device);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return WithContext([&](const Driver& driver) { return driver.cuCtxSynchronize(); });
}

cudaError_t cudaDeviceReset() {
  return WithDriver([&](const Driver& driver) {
    simrt::ForgetPrimary(simrt::ThisDevice());
    return driver.cuDevicePrimaryCtxReset(simrt::ThisDevice());
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return WithContext([&](const Driver& driver) {
    return driver.cuCtxGetStreamPriorityRange(leastPriority, greatestPriority);
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  return WithDriver(
      [&](const Driver& driver) { return driver.cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice); });
}

namespace {

// The peer's primary context, made if need be; this thread's current context stays what it is.
CUresult Peer(const Driver& driver, int device, CUcontext* peer) {
  CUcontext current = nullptr;
  if (CUresult error = driver.cuCtxGetCurrent(&current); error != CUDA_SUCCESS) return error;
  if (CUresult error = simrt::UsePrimary(driver, device, peer); error != CUDA_SUCCESS) return error;
  return driver.cuCtxSetCurrent(current);
}

}  // namespace

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  return WithContext([&](const Driver& driver) {
    CUcontext peer = nullptr;
    CUresult error = Peer(driver, peerDevice, &peer);
    return error == CUDA_SUCCESS ? driver.cuCtxEnablePeerAccess(peer, flags) : error;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  return WithContext([&](const Driver& driver) {
    CUcontext peer = nullptr;
    CUresult error = Peer(driver, peerDevice, &peer);
    return error == CUDA_SUCCESS ? driver.cuCtxDisablePeerAccess(peer) : error;
  });
}
