// Stream-ordered allocation, and pools, as the API has them.
#include <fcntl.h>

#include "tests/simcuda/driver/allocations.h"
#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Allocation;
using sim::Call;
using sim::Enter;
using sim::Needs;
using sim::Pool;
using sim::Stream;

CUresult Allocate(Call& call, Stream& stream, Pool& pool, CUdeviceptr* dptr, size_t bytes) {
  if (!call.sim.config.pools) return CUDA_ERROR_NOT_SUPPORTED;
  if (stream.capture == nullptr) {
    if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
  }
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *dptr = 0;
    return CUDA_SUCCESS;
  }
  if (stream.capture != nullptr) {
    if (pool.device == sim::kHost) return sim::NotSimulated("capture of allocations of the host's memory");
    return sim::CaptureAllocation(call, stream, pool.device, bytes, dptr);
  }
  if (stream.legacy) {
    if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
  }
  if (bytes > call.sim.config.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  std::optional<uint64_t> address = sim::TakeFromPool(call.sim, pool, bytes, stream);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.kind = Allocation::Kind::kPool;
  allocation.size = bytes;
  allocation.extent = sim::RoundUp(bytes, sim::kAllocationGrain);
  allocation.device = pool.device;
  allocation.context = stream.context;
  allocation.pool = &pool;
  allocation.serial = ++call.sim.serials;
  call.sim.allocations[*address] = allocation;
  *dptr = *address;
  sim::Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  call.sim.executor.Queue(stream, std::move(work), {}, call.lock);
  return CUDA_SUCCESS;
}

CUresult Free(Call& call, Stream& stream, CUdeviceptr dptr) {
  if (!call.sim.config.pools) return CUDA_ERROR_NOT_SUPPORTED;
  if (stream.capture == nullptr) {
    if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
  }
  if (dptr == 0) return CUDA_SUCCESS;
  if (stream.capture != nullptr) return sim::CaptureFree(call, stream, dptr);
  auto found = call.sim.allocations.find(dptr);
  if (found == call.sim.allocations.end() || found->second.kind == Allocation::Kind::kForeign) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream.legacy) {
    if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
  }
  Allocation freed = found->second;
  call.sim.allocations.erase(found);
  sim::Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  if (freed.kind == Allocation::Kind::kPlain)
    work.run = [&sim = call.sim, dptr, freed](sim::Context&) { sim::GivePlain(sim, dptr, freed); };
  uint64_t operation = call.sim.executor.Queue(stream, std::move(work), {}, call.lock);
  if (freed.kind == Allocation::Kind::kPool) sim::GiveToPool(call.sim, *freed.pool, dptr, &stream, operation);
  return CUDA_SUCCESS;
}

// `gpuDirectRDMACapable` of a later CUDA than the headers', to which it is reserved and zero.
bool IsWithinReach(const CUmemPoolProps& properties) { return properties.reserved[0] != 0; }

template <typename Body>
CUresult OnPool(const char* function, CUmemoryPool handle, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    Pool* pool = sim::FindPool(call.sim, handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(call, *pool);
  });
}

template <typename Body>
CUresult OnDevicePool(const char* function, CUmemoryPool* pool, CUdevice device, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    if (!call.sim.HasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!call.sim.config.pools) return CUDA_ERROR_NOT_SUPPORTED;
    *pool = sim::HandleOf(body(*call.sim.devices[device]));
    return CUDA_SUCCESS;
  });
}

uint64_t* High(Pool& pool, CUmemPool_attribute attribute) {
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) return &pool.reserved_high;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) return &pool.used_high;
  return nullptr;
}

CUresult SetAttribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse[attribute - 1] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      *High(pool, attribute) = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool.used : pool.reserved;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult GetAttribute(Pool& pool, CUmemPool_attribute attribute, void* value) {
  auto answer = [&](uint64_t number) {
    *static_cast<cuuint64_t*>(value) = number;
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = pool.reuse[attribute - 1];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return answer(pool.release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return answer(pool.reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return answer(pool.reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return answer(pool.used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return answer(pool.used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return sim::OnStream("cuMemAllocAsync", hStream, [&](Call& call, Stream& stream) {
    return Allocate(call, stream, *call.sim.DeviceOf(*stream.context).current_pool, dptr, bytesize);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return sim::OnStream("cuMemAllocFromPoolAsync", hStream, [&](Call& call, Stream& stream) {
    Pool* from = sim::FindPool(call.sim, pool);
    return from == nullptr ? CUDA_ERROR_INVALID_VALUE : Allocate(call, stream, *from, dptr, bytesize);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return sim::OnStream("cuMemFreeAsync", hStream,
                       [&](Call& call, Stream& stream) { return Free(call, stream, dptr); });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return OnDevicePool("cuDeviceGetDefaultMemPool", pool_out, dev,
                      [](const sim::Device& device) { return device.default_pool; });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return OnDevicePool("cuDeviceGetMemPool", pool, dev,
                      [](const sim::Device& device) { return device.current_pool; });
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return OnPool("cuDeviceSetMemPool", pool, [&](Call& call, Pool& chosen) {
    if (!call.sim.HasDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (chosen.device != dev) return CUDA_ERROR_INVALID_VALUE;
    call.sim.devices[dev]->current_pool = &chosen;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return Enter("cuMemPoolCreate", Needs::kDriver, [&](Call& call) {
    if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!call.sim.config.pools) return CUDA_ERROR_NOT_SUPPORTED;
    const CUmemLocation& location = poolProps->location;
    const bool on_host = location.type == CU_MEM_LOCATION_TYPE_HOST;
    if (!on_host && location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return sim::NotSimulated("pools on a node of the host");
    if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        poolProps->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
      return sim::NotSimulated("pools with other handles than file descriptors");
    if (!on_host && !call.sim.HasDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
    const bool within_reach = IsWithinReach(*poolProps);
    if (within_reach && call.sim.config.cuda_version < 13040) return CUDA_ERROR_INVALID_VALUE;
    Pool* made = sim::MakePool(call.sim, on_host ? sim::kHost : location.id, false);
    made->managed = poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    made->handle_types = poolProps->handleTypes;
    made->usage = poolProps->usage;
    made->within_reach = within_reach && call.sim.config.rdma;
    made->max_size = poolProps->maxSize;
    *pool = sim::HandleOf(made);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return OnPool("cuMemPoolDestroy", pool, [&](Call& call, Pool& doomed) {
    if (doomed.is_default) return CUDA_ERROR_INVALID_VALUE;
    doomed.destroyed = true;  // its memory goes with the last block
    for (const auto& device : call.sim.devices) {
      if (device->current_pool == &doomed) device->current_pool = device->default_pool;
    }
    sim::TrimPool(call.sim, doomed, 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return OnPool("cuMemPoolTrimTo", pool, [&](Call& call, Pool& trimmed) {
    sim::TrimPool(call.sim, trimmed, minBytesToKeep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return OnPool("cuMemPoolSetAttribute", pool, [&](Call&, Pool& changed) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : SetAttribute(changed, attr, value);
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return OnPool("cuMemPoolGetAttribute", pool, [&](Call&, Pool& asked) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : GetAttribute(asked, attr, value);
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return OnPool("cuMemPoolSetAccess", pool, [&](Call& call, Pool& changed) {
    if (map == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return sim::NotSimulated("access of the host to a pool");
      if (!call.sim.HasDevice(map[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      bool withdrawn = map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (withdrawn && map[i].location.id == changed.device) return CUDA_ERROR_INVALID_DEVICE;
    }
    for (size_t i = 0; i < count; ++i) {
      uint32_t bit = 1U << map[i].location.id;
      bool reads = (map[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0;
      bool writes = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      changed.readable = reads ? changed.readable | bit : changed.readable & ~bit;
      changed.writable = writes ? changed.writable | bit : changed.writable & ~bit;
    }
    for (const auto& [address, chunk] : changed.chunks) {
      sim::Mapping& mapping = *call.sim.addresses.Find(address).second;
      mapping.readable = changed.readable;
      mapping.writable = changed.writable;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  return OnPool("cuMemPoolGetAccess", memPool, [&](Call& call, Pool& pool) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
      return sim::NotSimulated("access of the host to a pool");
    if (!call.sim.HasDevice(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    bool reads = (pool.readable >> location->id & 1) != 0;
    bool writes = (pool.writable >> location->id & 1) != 0;
    *flags = writes  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : reads ? CU_MEM_ACCESS_FLAGS_PROT_READ
                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

// Nobody can import the descriptor: it stands for the device's whole memory.
CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType, unsigned long long flags) {
  return OnPool("cuMemPoolExportToShareableHandle", pool, [&](Call& call, Pool& exported) {
    if (handle_out == nullptr || exported.handle_types != handleType || flags != 0 ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int file = fcntl(call.sim.devices[exported.device]->physical.file(), F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(handle_out) = file;
    exported.exported = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                            CUmemAllocationHandleType handleType, unsigned long long flags) {
  return Enter("cuMemPoolImportFromShareableHandle", Needs::kDriver,
               [&](Call&) { return sim::NotSimulated("import of pools"); });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  return Enter("cuMemPoolExportPointer", Needs::kDriver, [&](Call& call) {
    const auto found = call.sim.allocations.find(ptr);
    const Pool* const pool = found == call.sim.allocations.end() ? nullptr : found->second.pool;
    if (shareData_out == nullptr || pool == nullptr || !pool->exported) return CUDA_ERROR_INVALID_VALUE;
    *shareData_out = {};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* shareData) {
  return OnPool("cuMemPoolImportPointer", pool, [&](Call&, Pool&) { return CUDA_ERROR_INVALID_VALUE; });
}
