// What an address is.
#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Allocation;
using sim::Call;
using sim::Enter;
using sim::Needs;

// One address, whatever kind of memory it lies in.
struct Place {
  bool on_device = false;
  uint64_t base = 0;
  uint64_t size = 0;
  int device = 0;
  sim::Context* context = nullptr;  // none for physical handles and pools, which belong to no context
  const Allocation* allocation = nullptr;
  const sim::Mapping* mapping = nullptr;
};

bool Locate(Call& call, uint64_t address, Place* place) {
  if (auto block = call.sim.FindHostBlock(address); block != call.sim.host_blocks.end()) {
    *place = {false, block->first, block->second.size, block->second.context->device, block->second.context};
    return true;
  }
  auto [base, mapping] = call.sim.addresses.Find(address);
  if (mapping == nullptr) return false;
  *place = {true, base, mapping->size, mapping->device, nullptr, nullptr, mapping};
  if (call.sim.virtual_mappings.contains(base)) {
    place->on_device = mapping->device != sim::kHost;
    return true;
  }
  auto found = call.sim.FindAllocation(address);
  if (found == call.sim.allocations.end()) return false;  // free memory of a pool
  const Allocation& allocation = found->second;
  const bool pooled =
      allocation.kind == Allocation::Kind::kPool || allocation.kind == Allocation::Kind::kGraph;
  sim::Context* context = pooled ? nullptr : allocation.context;
  const bool on_device = allocation.device != sim::kHost;
  *place = {on_device, found->first, allocation.size, allocation.device, context, &allocation, mapping};
  return true;
}

constexpr int kLastAttribute = CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;  // that the driver knows

const sim::Pool* PoolOf(const Place& place) {
  return place.allocation == nullptr ? nullptr : place.allocation->pool;
}

// Of a network card: what was asked for as such, and cuMemAlloc's memory without being asked. The next one likewise.
bool IsWithinReach(const Call& call, const Place& place) {
  const auto mapped = call.sim.virtual_mappings.find(place.base);
  if (mapped != call.sim.virtual_mappings.end())
    return call.sim.handles.at(mapped->second).properties.allocFlags.gpuDirectRDMACapable != 0;
  if (const sim::Pool* const pool = PoolOf(place)) return pool->within_reach;
  return place.on_device && call.sim.config.rdma;
}

bool IsForDecompression(const Call& call, const Place& place) {
  const auto mapped = call.sim.virtual_mappings.find(place.base);
  if (mapped != call.sim.virtual_mappings.end())
    return call.sim.handles.at(mapped->second).properties.allocFlags.usage != 0;
  if (const sim::Pool* const pool = PoolOf(place))
    return (pool->usage & CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS) != 0;
  return place.allocation != nullptr && place.allocation->kind == Allocation::Kind::kPlain;
}

template <typename T>
CUresult Store(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult Answer(Call& call, const Place& place, CUpointer_attribute attribute, uint64_t address, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Store(data, call.sim.HandleOf(place.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Store(data, place.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return call.context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : Store<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (place.on_device) return CUDA_ERROR_INVALID_VALUE;
      return Store(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:  // for nv-p2p.h; it makes copies synchronous, too
      if (!place.on_device) return CUDA_ERROR_INVALID_VALUE;
      if (place.allocation == nullptr) return Store(data, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{place.base, 1});
      call.sim.FindAllocation(address)->second.sync_memops = 1;
      return Store(data, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{place.allocation->serial, 1});
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Store(data, place.allocation == nullptr ? 0U : place.allocation->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Store<unsigned long long>(data,
                                       place.allocation == nullptr ? place.base : place.allocation->serial);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Store(data, PoolOf(place) != nullptr && PoolOf(place)->managed ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return place.device == sim::kHost ? CUDA_ERROR_INVALID_VALUE : Store(data, place.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: {
      bool capable = place.allocation != nullptr && place.allocation->kind == Allocation::Kind::kPlain;
      return Store(data, capable ? 1U : 0U);
    }
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Store<CUdeviceptr>(data, place.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Store<size_t>(data, place.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Store(data, 1U);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Store<unsigned long long>(data, CU_MEM_HANDLE_TYPE_NONE);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Store(data, IsWithinReach(call, place) ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Store(data, IsForDecompression(call, place) ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Store<CUmemoryPool>(data, PoolOf(place) != nullptr ? sim::HandleOf(PoolOf(place)) : nullptr);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:  // in whole pages; of a pool, what it lies in
      return Store<size_t>(
          data, place.allocation == nullptr ? place.size : sim::RoundUp(place.size, sim::kPageGrain));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Store<CUdeviceptr>(data, place.base);
    default:
      if (attribute <= 0 || attribute > kLastAttribute) return CUDA_ERROR_INVALID_VALUE;
      return sim::NotSimulated("pointer attribute " + std::to_string(attribute));
  }
}

// Where no context is current an attribute is told all the same.
template <typename Body>
CUresult OnPointer(const char* function, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    const CUresult error = sim::CurrentContext(call.sim, &call.context);
    return error == CUDA_SUCCESS || error == CUDA_ERROR_INVALID_CONTEXT ? body(call) : error;
  });
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return OnPointer("cuPointerGetAttribute", [&](Call& call) {
    Place place;
    if (data == nullptr || !Locate(call, ptr, &place)) return CUDA_ERROR_INVALID_VALUE;
    return Answer(call, place, attribute, ptr, data);
  });
}

// An address that nobody knows is no error here: its attributes are null, and its context tells.
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  return OnPointer("cuPointerGetAttributes", [&](Call& call) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Place place;
    bool known = Locate(call, ptr, &place);
    for (unsigned i = 0; i < numAttributes; ++i) {
      if (known) {
        CUresult error = Answer(call, place, attributes[i], ptr, data[i]);
        if (error == CUDA_ERROR_NOT_SUPPORTED) return error;
        if (error == CUDA_SUCCESS) continue;
      }
      // What cannot be answered is null, in as many bytes as the answer would have.
      switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
          Store(data[i], 0U);
          break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
          Store(data[i], CU_DEVICE_INVALID);
          break;
        default:
          Store(data[i], uint64_t{0});
          break;
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return Enter("cuPointerSetAttribute", Needs::kContext, [&](Call& call) {
    Place place;
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !Locate(call, ptr, &place))
      return CUDA_ERROR_INVALID_VALUE;
    if (!place.on_device || place.allocation == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    call.sim.FindAllocation(ptr)->second.sync_memops = *static_cast<const unsigned*>(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAddressRange(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return Enter("cuMemGetAddressRange", Needs::kContext, [&](Call& call) {
    Place place;
    if (!Locate(call, dptr, &place)) return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = place.base;
    if (psize != nullptr) *psize = place.size;
    return CUDA_SUCCESS;
  });
}
