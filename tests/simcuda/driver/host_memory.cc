// Pinned host memory: ordinary memory that the library knows.
#include <cstdlib>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Call;
using sim::Enter;
using sim::Needs;

constexpr size_t kHostPage = 4096;

CUresult Allocate(Call& call, void** pp, size_t bytes, unsigned flags) {
  if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (pp == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  *pp = aligned_alloc(kHostPage, sim::RoundUp(bytes, kHostPage));
  if (*pp == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  call.sim.host_blocks[reinterpret_cast<uint64_t>(*pp)] = {bytes, flags, call.context, false};
  return CUDA_SUCCESS;
}

template <typename Body>
CUresult OnBlock(const char* function, const void* p, Body&& body) {
  return Enter(function, Needs::kContext, [&](Call& call) {
    auto block = call.sim.FindHostBlock(reinterpret_cast<uint64_t>(p));
    return block == call.sim.host_blocks.end() ? CUDA_ERROR_INVALID_VALUE : body(call, block->second);
  });
}

}  // namespace

CUresult cuMemAllocHost(void** pp, size_t bytesize) {
  return Enter("cuMemAllocHost", Needs::kContext,
               [&](Call& call) { return Allocate(call, pp, bytesize, 0); });
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return Enter("cuMemHostAlloc", Needs::kContext,
               [&](Call& call) { return Allocate(call, pp, bytesize, Flags); });
}

CUresult cuMemFreeHost(void* p) {
  return Enter("cuMemFreeHost", Needs::kContext, [&](Call& call) {
    if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
    auto known = [&] {
      auto found = call.sim.host_blocks.find(reinterpret_cast<uint64_t>(p));
      return found != call.sim.host_blocks.end() && !found->second.registered;
    };
    if (!known()) return CUDA_ERROR_INVALID_VALUE;
    CUresult error = sim::WaitFor(call, call.sim.executor.Tails(nullptr), *call.context);
    if (error != CUDA_SUCCESS) return error;
    if (!known()) return CUDA_ERROR_INVALID_VALUE;
    call.sim.host_blocks.erase(reinterpret_cast<uint64_t>(p));
    free(p);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return OnBlock("cuMemHostGetDevicePointer", p, [&](Call&, const sim::HostBlock&) {
    if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = reinterpret_cast<CUdeviceptr>(p);  // unified addressing
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return OnBlock("cuMemHostGetFlags", p, [&](Call&, const sim::HostBlock& block) {
    if (pFlags == nullptr || block.registered) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = block.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
  return Enter("cuMemHostRegister", Needs::kContext, [&](Call& call) {
    if (p == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    constexpr unsigned kPortableAndMapped = 3;
    if ((Flags & ~kPortableAndMapped) != 0) return sim::NotSimulated("flags of cuMemHostRegister");
    auto at = reinterpret_cast<uint64_t>(p);
    bool known = call.sim.FindHostBlock(at) != call.sim.host_blocks.end();
    if (known) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    call.sim.host_blocks[at] = {bytesize, Flags, call.context, true};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostUnregister(void* p) {
  return Enter("cuMemHostUnregister", Needs::kContext, [&](Call& call) {
    auto found = call.sim.host_blocks.find(reinterpret_cast<uint64_t>(p));
    bool registered = found != call.sim.host_blocks.end() && found->second.registered;
    if (!registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    call.sim.host_blocks.erase(found);
    return CUDA_SUCCESS;
  });
}
