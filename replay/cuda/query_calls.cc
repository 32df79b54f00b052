// What a pointer is: for one of ours the block that it lies in, not the arena.
#include <fmt/format.h>

#include "replay/core/log.h"
#include "replay/cuda/core.h"

namespace reprise::replay::cuda {
namespace {

// CU_POINTER_ATTRIBUTE_...
enum PointerAttribute {
  kContext = 1,
  kMemoryType = 2,
  kHostPointer = 4,
  kP2pTokens = 5,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kLegacyIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kGpuDirectRdmaCapable = 15,
  kPoolHandle = 17,
  kMappingSize = 18,
  kMappingBase = 19,
  kHwDecompressCapable = 21,
};

constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE

// A block of a pool has no context: by the lack of one, libraries tell what they cannot export in the usual way (UCX,
// Open MPI). A synchronous block has the one it was made in.
bool HasContext(const Engine::Found& block) { return IsEveryStream(block.info.stream); }

// What the driver need not be asked, or must not: of a block that lies in the host's memory for want of the
// device's it would say so, and of a slab that it has a context, which is not the job's to see.
bool KnownWithoutDriver(int attribute) {
  return attribute == kContext || attribute == kMemoryType || attribute == kDeviceOrdinal;
}

// A buffer's id is one of its kind in the process. The driver counts its own from 1, every device of ours its
// blocks.
uint64_t BufferId(int device, BlockId block) {
  return (uint64_t{1} << 48) + (static_cast<uint64_t>(device) << 49) + static_cast<uint64_t>(block);
}

}  // namespace

std::optional<Engine::Found> Core::FindBlock(cu_address address, Device** device, Bytes* bytes) {
  *device = FindOwner(address);
  if (*device == nullptr) return std::nullopt;
  if (IsParked(**device, address)) return std::nullopt;
  const Engine::Guard guard = (*device)->Lock();
  std::optional<Engine::Found> found = (*device)->engine().Find(guard, Offset((*device)->OffsetOf(address)));
  // The arena's rounding is not the job's to see.
  if (found && Offset((*device)->OffsetOf(address)) - found->begin >= found->info.requested) found.reset();
  if (found) *bytes = found->info.requested;
  return found;
}

// Without a current context the driver tells nothing (openucx/ucx issue 4367).
Result Core::AddressRange(cu_address* base, size_t* bytes, cu_address address) {
  Device* device = nullptr;
  Bytes size;
  const std::optional<Engine::Found> block = FindBlock(address, &device, &size);
  if (device == nullptr) return driver().cuMemGetAddressRange_v2(base, bytes, address);
  if (driver_.Current() == nullptr &&
      driver().cuMemGetAddressRange_v2(nullptr, nullptr, address) == kInvalidContext)
    return kInvalidContext;
  if (!block) return kNotFound;
  if (base != nullptr) *base = device->AddressOf(block->begin);
  if (bytes != nullptr) *bytes = static_cast<size_t>(size.count());
  return kSuccess;
}

// `value` holds the driver's answer, which is right but for what tells the block from the arena.
Result Core::PatchAttribute(void* value, int attribute, const Engine::Found& block, Device& device,
                            Bytes bytes) {
  const cu_address begin = device.AddressOf(block.begin);
  switch (attribute) {
    case kContext: {
      const Engine::Guard guard = device.Lock();
      const Stream stream = block.info.stream;
      const cu_context context = HasContext(block) ? device.SynchronousContext(guard, stream) : nullptr;
      *static_cast<cu_context*>(value) = context;
      break;
    }
    case kMemoryType:
      *static_cast<unsigned*>(value) = kDeviceMemory;
      break;
    case kHostPointer:
      *static_cast<void**>(value) = nullptr;
      return kInvalidValue;
    case kDeviceOrdinal:
      *static_cast<int*>(value) = device.ordinal();
      break;
    case kBufferId:
      *static_cast<uint64_t*>(value) = BufferId(device.ordinal(), block.info.id);
      break;
    // Truth values, of which a caller may have no more than a byte; the driver has written all that there is.
    case kLegacyIpcCapable:
      *static_cast<unsigned char*>(value) = 0;
      break;
    case kGpuDirectRdmaCapable:  // of a plain pool's memory the driver says no, whatever the device can do
      if (block.info.owner != kNoPool) *static_cast<unsigned char*>(value) = 0;
      break;
    case kHwDecompressCapable:  // and of cuMemAlloc's yes, on a device without such hardware too (H200, driver 580)
      *static_cast<unsigned char*>(value) = block.info.owner == kNoPool ? 1 : 0;
      break;
    case kRangeStart:
    case kMappingBase:
      *static_cast<cu_address*>(value) = begin;
      break;
    case kRangeSize:
    case kMappingSize:
      *static_cast<size_t*>(value) = static_cast<size_t>(bytes.count());
      break;
    case kPoolHandle: {
      const std::optional<PoolTable::Pool> pool = pools_.Find(block.info.owner);
      *static_cast<cu_pool*>(value) = pool ? pool->handle : nullptr;
      break;
    }
    default:
      break;
  }
  return kSuccess;
}

// Tokens are asked for as copies that are synchronous are, by who registers memory with a network.
Result Core::PointerAttribute(void* value, int attribute, cu_address address) {
  if (attribute == kP2pTokens) NoteExport();
  Device* device = nullptr;
  Bytes bytes;
  const std::optional<Engine::Found> block = FindBlock(address, &device, &bytes);
  if (device != nullptr && !block) return kInvalidValue;
  const bool ask = !block || value == nullptr || !KnownWithoutDriver(attribute);
  const Result result = ask ? driver().cuPointerGetAttribute(value, attribute, address) : kSuccess;
  if (device == nullptr || !block || value == nullptr) return result;
  if (result != kSuccess && attribute == kP2pTokens)
    RefuseExport(address, "cuPointerGetAttribute", Exportable::kAll);
  return result == kSuccess ? PatchAttribute(value, attribute, *block, *device, bytes) : result;
}

// For an address that is nobody's the driver answers success with values of zero.
Result Core::PointerAttributes(unsigned count, int* attributes, void** values, cu_address address) {
  Device* device = nullptr;
  Bytes bytes;
  const std::optional<Engine::Found> block = FindBlock(address, &device, &bytes);
  const bool nobodys = device != nullptr && !block;
  const Result result = driver().cuPointerGetAttributes(count, attributes, values, nobodys ? 1 : address);
  if (result != kSuccess || device == nullptr || !block) return result;
  for (unsigned i = 0; i < count; ++i) PatchAttribute(values[i], attributes[i], *block, *device, bytes);
  return result;
}

bool Core::LiesOn(const Device& device, cu_address block) const {
  unsigned type = kDeviceMemory;
  int ordinal = device.ordinal();
  unsigned managed = 0;
  int attributes[] = {kMemoryType, kDeviceOrdinal, kIsManaged};
  void* values[] = {&type, &ordinal, &managed};
  const Result told = driver().cuPointerGetAttributes(3, attributes, values, block);
  return told != kSuccess || (type == kDeviceMemory && ordinal == device.ordinal() && managed == 0);
}

// That copies are synchronous is asked for memory that is registered with a network. Mapped memory cannot be
// made so.
Result Core::SetPointerAttribute(const void* value, int attribute, cu_address address) {
  if (attribute == kSyncMemops) NoteExport();
  const Result result = driver().cuPointerSetAttribute(value, attribute, address);
  if (result != kSuccess && attribute == kSyncMemops)
    RefuseExport(address, "cuPointerSetAttribute", Exportable::kAll);
  return result;
}

bool Core::RefuseExport(cu_address address, const char* call, Exportable exportable) {
  Device* device = nullptr;
  Bytes bytes;
  const std::optional<Engine::Found> block = FindBlock(address, &device, &bytes);
  if (device == nullptr) return false;
  const bool ordered = block && !HasContext(*block);
  const bool granted = block && exportable >= (ordered ? Exportable::kAll : Exportable::kSynchronous);
  if (granted && device->refused_exports.fetch_add(1) == 0) {
    // Recorded only, a job still has its stream-ordered blocks from the arena, and no others.
    Note([&] {
      Log(LogLevel::kWarn,
          fmt::format("{}: a block served from the arena cannot be exported; run the job with "
                      "{}, or tell its library not to export",
                      call, ordered ? "REPRISE_DISABLE=1" : "REPRISE_MODE=record"));
    });
  }
  return true;
}

}  // namespace reprise::replay::cuda
