// Virtual memory management: reserved addresses, physical handles, and the mapping of one onto the other.
#include <algorithm>

#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Call;
using sim::Enter;
using sim::kPageGrain;
using sim::Needs;
using sim::PhysicalHandle;

template <typename Body>
CUresult OnMachine(const char* function, Body&& body) {
  return Enter(function, Needs::kDriver,
               [&](Call& call) { return call.sim.config.vmm ? body(call) : CUDA_ERROR_NOT_SUPPORTED; });
}

CUresult CheckHost(const Call& call, const CUmemLocation& location) {
  if (call.sim.config.host_memory == 0) return CUDA_ERROR_NOT_SUPPORTED;  // a driver that cannot
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_HOST:
      return call.sim.config.host_anywhere ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id == sim::kHostNode ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// From CUDA 13.5 on a part of a device can be named, by two bytes: the device and the part. All parts are the same here.
constexpr int kLocalityDomainVersion = 13050;
constexpr int kLocalityDomain = 6;

CUmemLocation WholeOf(const Call& call, const CUmemLocation& location) {
  if (location.type != kLocalityDomain || call.sim.config.cuda_version < kLocalityDomainVersion)
    return location;
  return {CU_MEM_LOCATION_TYPE_DEVICE, location.id & 0xff};
}

CUresult Check(const Call& call, const CUmemAllocationProp* prop) {
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (!call.sim.HasDevice(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  } else if (CUresult error = CheckHost(call, prop->location); error != CUDA_SUCCESS) {
    return error;
  }
  if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) return sim::NotSimulated("shareable handles");
  if (prop->allocFlags.compressionType != 0) return sim::NotSimulated("compressible memory");
  if (prop->allocFlags.gpuDirectRDMACapable != 0 && !call.sim.config.rdma) return CUDA_ERROR_NOT_SUPPORTED;
  if ((prop->allocFlags.usage & ~CU_MEM_CREATE_USAGE_HW_DECOMPRESS) != 0)
    return sim::NotSimulated("CUmemAllocationProp usage");
  if (prop->allocFlags.usage != 0 && !call.sim.config.decompression) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

bool Aligned(uint64_t a, uint64_t b) { return a % kPageGrain == 0 && b % kPageGrain == 0; }

sim::Physical& MemoryOf(Call& call, const PhysicalHandle& handle) {
  return handle.device == sim::kHost ? call.sim.host() : call.sim.devices[handle.device]->physical;
}

// With neither references nor mappings left, the memory goes back.
void Drop(Call& call, CUmemGenericAllocationHandle handle) {
  const PhysicalHandle& physical = call.sim.handles.at(handle);
  if (physical.references > 0 || physical.mappings > 0) return;
  MemoryOf(call, physical).Give(physical.offset, physical.size);
  call.sim.handles.erase(handle);
}

bool Reserved(Call& call, uint64_t address, uint64_t size) {
  auto range = call.sim.virtual_ranges.upper_bound(address);
  if (range == call.sim.virtual_ranges.begin()) return false;
  --range;
  return address - range->first < range->second.size && size <= range->second.size - (address - range->first);
}

// The mappings of which the range consists, wholly and without a gap; empty if it does not.
std::vector<uint64_t> WholeMappings(Call& call, uint64_t address, uint64_t size) {
  std::vector<uint64_t> found;
  uint64_t end = address + size;
  while (address < end) {
    auto [base, mapping] = call.sim.addresses.Find(address);
    bool whole = mapping != nullptr && base == address && mapping->size <= end - address;
    if (!whole || !call.sim.virtual_mappings.contains(base)) return {};
    found.push_back(base);
    address += mapping->size;
  }
  return found;
}

bool Overlaps(Call& call, uint64_t address, uint64_t size) {
  auto next = call.sim.virtual_mappings.lower_bound(address);
  bool within = next != call.sim.virtual_mappings.end() && next->first < address + size;
  return within || call.sim.addresses.Find(address).second != nullptr;
}

void Grant(sim::Mapping& mapping, const CUmemAccessDesc& desc) {
  uint32_t bit = 1U << desc.location.id;
  bool reads = (desc.flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0;
  bool writes = desc.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  mapping.readable = reads ? mapping.readable | bit : mapping.readable & ~bit;
  mapping.writable = writes ? mapping.writable | bit : mapping.writable & ~bit;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return OnMachine("cuMemAddressReserve", [&](Call& call) {
    bool power_of_two = (alignment & (alignment - 1)) == 0;
    if (ptr == nullptr || size == 0 || size % kPageGrain != 0 || !power_of_two || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::optional<uint64_t> at;
    if (addr % kPageGrain == 0 && addr != 0 && call.sim.addresses.ReserveAt(addr, size)) at = addr;  // a hint
    if (!at) at = call.sim.addresses.Reserve(size, std::max<uint64_t>(alignment, kPageGrain));
    if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
    call.sim.virtual_ranges[*at] = {size};
    *ptr = *at;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return OnMachine("cuMemAddressFree", [&](Call& call) {
    auto range = call.sim.virtual_ranges.find(ptr);
    bool known = range != call.sim.virtual_ranges.end() && range->second.size == size;
    if (!known || Overlaps(call, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
    call.sim.virtual_ranges.erase(range);
    call.sim.addresses.Release(ptr, size);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* asked,
                     unsigned long long flags) {
  return OnMachine("cuMemCreate", [&](Call& call) {
    CUmemAllocationProp whole = {};
    if (asked != nullptr) whole = *asked;
    whole.location = WholeOf(call, whole.location);
    const CUmemAllocationProp* const prop = asked == nullptr ? nullptr : &whole;
    if (CUresult error = Check(call, prop); error != CUDA_SUCCESS) return error;
    if (handle == nullptr || size == 0 || size % kPageGrain != 0 || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const bool on_device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    std::optional<uint64_t> offset =
        on_device ? sim::TakePhysical(call.sim, prop->location.id, size) : call.sim.host().Take(size);
    if (!offset) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = ++call.sim.serials;
    call.sim.handles[*handle] = {*prop, size, *offset, on_device ? prop->location.id : sim::kHost, 1, 0};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return OnMachine("cuMemRelease", [&](Call& call) {
    auto found = call.sim.handles.find(handle);
    if (found == call.sim.handles.end() || found->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
    --found->second.references;
    Drop(call, handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return OnMachine("cuMemMap", [&](Call& call) {
    auto found = call.sim.handles.find(handle);
    if (found == call.sim.handles.end() || flags != 0 || offset != 0) return CUDA_ERROR_INVALID_VALUE;
    PhysicalHandle& physical = found->second;
    if (size == 0 || !Aligned(ptr, size) || size > physical.size) return CUDA_ERROR_INVALID_VALUE;
    if (!Reserved(call, ptr, size) || Overlaps(call, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
    char* bytes = MemoryOf(call, physical).At(physical.offset);
    call.sim.addresses.Map(ptr, {size, bytes, physical.device, 0, 0, false});
    call.sim.virtual_mappings[ptr] = handle;
    ++physical.mappings;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return OnMachine("cuMemUnmap", [&](Call& call) {
    std::vector<uint64_t> mappings = WholeMappings(call, ptr, size);
    if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t base : mappings) {
      CUmemGenericAllocationHandle handle = call.sim.virtual_mappings.at(base);
      call.sim.addresses.Unmap(base);
      call.sim.virtual_mappings.erase(base);
      --call.sim.handles.at(handle).mappings;
      Drop(call, handle);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return OnMachine("cuMemSetAccess", [&](Call& call) {
    std::vector<uint64_t> mappings = WholeMappings(call, ptr, size);
    if (mappings.empty() || desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return sim::NotSimulated("access of the host");
      if (!call.sim.HasDevice(desc[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    }
    const auto is_for_network = [&](uint64_t base) {
      return call.sim.handles.at(call.sim.virtual_mappings.at(base))
                 .properties.allocFlags.gpuDirectRDMACapable != 0;
    };
    if (!call.sim.config.rdma_mapped && std::ranges::any_of(mappings, is_for_network))
      return CUDA_ERROR_UNKNOWN;
    for (uint64_t base : mappings) {
      for (size_t i = 0; i < count; ++i) Grant(*call.sim.addresses.Find(base).second, desc[i]);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return OnMachine("cuMemGetAccess", [&](Call& call) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return sim::NotSimulated("access of the host");
    if (!call.sim.HasDevice(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    auto [base, mapping] = call.sim.addresses.Find(ptr);
    if (mapping == nullptr || !call.sim.virtual_mappings.contains(base)) return CUDA_ERROR_INVALID_VALUE;
    bool reads = (mapping->readable >> location->id & 1) != 0;
    bool writes = (mapping->writable >> location->id & 1) != 0;
    *flags = (reads ? 1U : 0U) | (writes ? 2U : 0U);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return OnMachine("cuMemGetAllocationGranularity", [&](Call& call) {
    if (CUresult error = Check(call, prop); error != CUDA_SUCCESS) return error;
    if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *granularity = kPageGrain;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  return OnMachine("cuMemGetAllocationPropertiesFromHandle", [&](Call& call) {
    auto found = call.sim.handles.find(handle);
    if (found == call.sim.handles.end() || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *prop = found->second.properties;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return OnMachine("cuMemRetainAllocationHandle", [&](Call& call) {
    auto [base, mapping] = call.sim.addresses.Find(reinterpret_cast<uint64_t>(addr));
    auto found = call.sim.virtual_mappings.find(base);
    if (handle == nullptr || mapping == nullptr || found == call.sim.virtual_mappings.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ++call.sim.handles.at(found->second).references;
    *handle = found->second;
    return CUDA_SUCCESS;
  });
}
