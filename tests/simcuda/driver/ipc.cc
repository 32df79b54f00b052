// Legacy inter-process memory handles. A handle names a piece of the exporting process's memory file, which
// an importer opens through /proc; both processes must belong to one user.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/simcuda/driver/allocations.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Allocation;
using sim::Call;
using sim::Enter;
using sim::Needs;

constexpr uint64_t kHostPage = 4096;

struct Ticket {
  pid_t process;
  int file;
  int device;
  uint64_t offset;
  uint64_t size;
  uint64_t extent;
};
static_assert(sizeof(Ticket) <= CU_IPC_HANDLE_SIZE);

// The memory behind a ticket, mapped into this process; null if that process is gone, or not ours to look
// into.
char* Open(const Ticket& ticket, uint64_t skip) {
  std::string path = "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.file);
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, ticket.extent + skip, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      static_cast<off_t>(ticket.offset - skip));
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory) + skip;
}

}  // namespace

// Memory of pools, and of physical handles, has ways of its own to be shared: refused, as documented.
CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  return Enter("cuIpcGetMemHandle", Needs::kContext, [&](Call& call) {
    auto found = call.sim.FindAllocation(dptr);
    if (pHandle == nullptr || found == call.sim.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    const Allocation& allocation = found->second;
    if (allocation.kind != Allocation::Kind::kPlain) return CUDA_ERROR_INVALID_VALUE;
    const sim::Physical& memory = call.sim.devices[allocation.device]->physical;
    Ticket ticket = {getpid(),        memory.file(),    allocation.device, allocation.physical,
                     allocation.size, allocation.extent};
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle->reserved, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return Enter("cuIpcOpenMemHandle", Needs::kContext, [&](Call& call) {
    Ticket ticket;
    memcpy(&ticket, handle.reserved, sizeof ticket);
    if (pdptr == nullptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    if (ticket.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
    if (!call.sim.HasDevice(ticket.device)) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t skip = ticket.offset % kHostPage;
    char* bytes = Open(ticket, skip);
    if (bytes == nullptr) return CUDA_ERROR_MAP_FAILED;
    std::optional<uint64_t> address = call.sim.addresses.Reserve(ticket.extent, sim::kPageGrain);
    if (!address) return CUDA_ERROR_MAP_FAILED;
    uint32_t own = 1U << call.context->device;
    call.sim.addresses.Map(*address, {ticket.extent, bytes, ticket.device, own, own, true});
    Allocation allocation;
    allocation.kind = Allocation::Kind::kForeign;
    allocation.size = ticket.size;
    allocation.extent = ticket.extent;
    allocation.physical = skip;
    allocation.device = ticket.device;
    allocation.context = call.context;
    allocation.serial = ++call.sim.serials;
    call.sim.allocations[*address] = allocation;
    *pdptr = *address;
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  return Enter("cuIpcCloseMemHandle", Needs::kContext, [&](Call& call) {
    auto found = call.sim.allocations.find(dptr);
    bool foreign = found != call.sim.allocations.end() && found->second.kind == Allocation::Kind::kForeign;
    if (!foreign) return CUDA_ERROR_INVALID_VALUE;
    CUresult error = sim::WaitFor(call, call.sim.executor.Tails(nullptr), *call.context);
    if (error != CUDA_SUCCESS) return error;
    sim::EndAllocation(call.sim, call.sim.allocations.find(dptr), nullptr, 0);
    return CUDA_SUCCESS;
  });
}

// Nobody can import the descriptor: it stands for the device's whole memory.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags) {
  return Enter("cuMemGetHandleForAddressRange", Needs::kContext, [&](Call& call) {
    if (handle == nullptr || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 ||
        dptr % kHostPage != 0 || size == 0 || size % kHostPage != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto found = call.sim.FindAllocation(dptr);
    const bool known =
        found != call.sim.allocations.end() && found->second.device != sim::kHost &&
        (found->second.kind == Allocation::Kind::kPlain || found->second.kind == Allocation::Kind::kPool);
    if (!known) return CUDA_ERROR_NOT_SUPPORTED;
    const Allocation& allocation = found->second;
    if (dptr + size > found->first + allocation.extent) return CUDA_ERROR_INVALID_VALUE;
    const int file = fcntl(call.sim.devices[allocation.device]->physical.file(), F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(handle) = file;
    return CUDA_SUCCESS;
  });
}
