// cuMemAlloc and its family.
#include "tests/simcuda/driver/allocations.h"

#include <sys/mman.h>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace sim {

void GivePlain(Simulator& sim, uint64_t address, const Allocation& allocation) {
  sim.addresses.Unmap(address);
  sim.addresses.Release(address, allocation.extent);
  sim.devices[allocation.device]->physical.Give(allocation.physical, allocation.extent);
}

void EndAllocation(Simulator& sim, std::map<uint64_t, Allocation>::iterator allocation, const Stream* stream,
                   uint64_t operation) {
  auto [address, what] = *allocation;
  sim.allocations.erase(allocation);
  switch (what.kind) {
    case Allocation::Kind::kPlain:
      GivePlain(sim, address, what);
      break;
    case Allocation::Kind::kPool:
      GiveToPool(sim, *what.pool, address, stream, operation);
      break;
    case Allocation::Kind::kGraph:
      break;  // the graph keeps address and memory
    case Allocation::Kind::kForeign: {
      uint64_t skip = what.physical;
      munmap(sim.addresses.Find(address).second->bytes - skip, what.extent + skip);
      sim.addresses.Unmap(address);
      sim.addresses.Release(address, what.extent);
      break;
    }
  }
}

uint64_t NewAllocation(Call& call, uint64_t bytes) {
  Simulator& sim = call.sim;
  if (bytes > sim.config.memory) return 0;
  uint64_t extent = RoundUp(bytes, kAllocationGrain);
  int ordinal = call.context->device;
  Physical& memory = sim.devices[ordinal]->physical;
  std::optional<uint64_t> physical = TakePhysical(sim, ordinal, extent);
  if (!physical) return 0;
  std::optional<uint64_t> address =
      sim.addresses.Reserve(extent, extent >= kPageGrain ? kPageGrain : kAllocationGrain);
  if (!address) {
    memory.Give(*physical, extent);
    return 0;
  }
  sim.addresses.Map(*address, {extent, memory.At(*physical), ordinal, 1U << ordinal, 1U << ordinal, true});
  Allocation allocation;
  allocation.size = bytes;
  allocation.extent = extent;
  allocation.physical = *physical;
  allocation.device = ordinal;
  allocation.context = call.context->green ? sim.DeviceOf(*call.context).primary : call.context;
  allocation.serial = ++sim.serials;
  sim.allocations[*address] = allocation;
  return *address;
}

}  // namespace sim

namespace {

using sim::Call;
using sim::Enter;
using sim::Needs;

constexpr size_t kPitchGrain = 512;

CUresult Allocate(Call& call, CUdeviceptr* dptr, size_t bytes) {
  if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *dptr = 0;
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t address = sim::NewAllocation(call, bytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = address;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAlloc(CUdeviceptr* dptr, size_t bytesize) {
  return Enter("cuMemAlloc", Needs::kContext, [&](Call& call) { return Allocate(call, dptr, bytesize); });
}

CUresult cuMemAllocPitch(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                         unsigned int ElementSizeBytes) {
  return Enter("cuMemAllocPitch", Needs::kContext, [&](Call& call) {
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (pPitch == nullptr || !element) return CUDA_ERROR_INVALID_VALUE;
    *pPitch = sim::RoundUp(WidthInBytes, kPitchGrain);
    return Allocate(call, dptr, *pPitch * Height);
  });
}

// An address says whose it is: no context need be current.
CUresult cuMemFree(CUdeviceptr dptr) {
  return Enter("cuMemFree", Needs::kDriver, [&](Call& call) {
    const CUresult current = sim::CurrentContext(call.sim, &call.context);
    if (current != CUDA_SUCCESS && current != CUDA_ERROR_INVALID_CONTEXT) return current;
    if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
    if (dptr == 0) return CUDA_SUCCESS;
    auto known = [&] {
      auto found = call.sim.allocations.find(dptr);
      return found != call.sim.allocations.end() && found->second.kind != sim::Allocation::Kind::kForeign;
    };
    if (!known()) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = call.sim.allocations.find(dptr);
    if (allocation->second.kind != sim::Allocation::Kind::kPlain) {
      // Of pool memory the driver takes it that its use is over, waits for nothing, and keeps no more than it must.
      sim::EndAllocation(call.sim, allocation, nullptr, 0);
      sim::TrimPools(call.sim);
      return CUDA_SUCCESS;
    }
    // The device is waited for, and with it every stream: the memory may belong to any of them.
    if (allocation->second.size >= sim::TheConfig().free_waits) {
      const sim::Context& context = *allocation->second.context;
      CUresult error = sim::WaitFor(call, call.sim.executor.Tails(nullptr), context);
      if (error != CUDA_SUCCESS) return error;
      if (!known()) return CUDA_ERROR_INVALID_VALUE;  // freed by another thread meanwhile
    }
    sim::EndAllocation(call.sim, call.sim.allocations.find(dptr), nullptr, 0);
    sim::TrimPools(call.sim);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return Enter("cuMemGetInfo", Needs::kContext, [&](Call& call) {
    const sim::Physical& memory = call.sim.DeviceOf(*call.context).physical;
    if (free != nullptr) *free = memory.capacity() - memory.used();
    if (total != nullptr) *total = memory.capacity();
    return CUDA_SUCCESS;
  });
}
