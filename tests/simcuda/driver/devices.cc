// The library itself, and its devices.
#include <cstdio>
#include <cstring>

#include "tests/simcuda/driver/simulator.h"

namespace {

using sim::Call;
using sim::Needs;

template <typename Body>
CUresult OnDevice(const char* function, CUdevice device, Body&& body) {
  return sim::Enter(function, Needs::kDriver, [&](Call& call) {
    return call.sim.HasDevice(device) ? body(call) : CUDA_ERROR_INVALID_DEVICE;
  });
}

// Attributes as a recent data-centre device has them, where they matter to memory; nothing is promised about
// speed.
CUresult Attribute(const sim::Config& config, CUdevice_attribute attribute, int device, int* value) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = CU_COMPUTEMODE_DEFAULT;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      *value = device + 1;
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = config.vmm;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
      *value = config.pools;
      break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      *value = config.rdma;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      *value = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      break;
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
      *value = config.decompression ? 7 : 0;
      break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      *value = sim::kHostNode;
      break;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      *value = 1;
      break;
    // Not simulated, and so said not to be there.
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case CU_DEVICE_ATTRIBUTE_TCC_DRIVER:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      *value = 0;
      break;
    default:
      return sim::NotSimulated("device attribute " + std::to_string(attribute));
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuInit(unsigned int Flags) {
  return sim::Enter("cuInit", Needs::kNothing, [&](Call& call) {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (call.sim.config.devices == 0) return CUDA_ERROR_NO_DEVICE;
    if (!call.sim.initialized && !call.sim.config.quiet) sim::Say("a simulated device; kernels do not run");
    call.sim.initialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = sim::TheConfig().cuda_version;
  return CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable != nullptr) *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return OnDevice("cuDeviceGet", ordinal, [&](Call&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return sim::Enter("cuDeviceGetCount", Needs::kDriver, [&](Call& call) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = call.sim.config.devices;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  return OnDevice("cuDeviceGetName", dev, [&](Call&) {
    if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, static_cast<size_t>(len), "Simulated device %d", dev);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return OnDevice("cuDeviceGetUuid", dev, [&](Call&) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "simulated device", sizeof uuid->bytes);
    uuid->bytes[9] = static_cast<char>(dev);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return OnDevice("cuDeviceGetPCIBusId", dev, [&](Call&) {
    if (pciBusId == nullptr || len < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, static_cast<size_t>(len), "0000:%02X:00.0", static_cast<unsigned>(dev + 1));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice dev) {
  return OnDevice("cuDeviceTotalMem", dev, [&](Call& call) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = call.sim.config.memory;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return OnDevice("cuDeviceGetAttribute", dev, [&](Call& call) {
    return pi == nullptr ? CUDA_ERROR_INVALID_VALUE : Attribute(call.sim.config, attrib, dev, pi);
  });
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return OnDevice("cuDeviceCanAccessPeer", dev, [&](Call& call) {
    if (!call.sim.HasDevice(peerDev)) return CUDA_ERROR_INVALID_DEVICE;
    if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
  return OnDevice("cuDeviceGetP2PAttribute", srcDevice, [&](Call& call) {
    if (!call.sim.HasDevice(dstDevice) || srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
  });
}
