#include "replay/cuda/device_memory.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::replay::cuda {
namespace {

constexpr auto kMostReserve = static_cast<uint64_t>(kLargestRange.count());
constexpr uint64_t kLeastReserve = uint64_t{1} << 28;
// Granules; to make fewer in vain costs little.
constexpr int64_t kWorthAsking = 64;

// A synchronous block is to be all that the driver's own would be: within a network card's reach, and for decompression
// by hardware, where the device can.
AllocationProp PropOf(const Driver& driver, int device) {
  AllocationProp prop;
  prop.type = kPinnedAllocation;
  prop.location = {kDeviceLocation, device};
  prop.flags.rdma_capable = driver.Attribute(device, kRdmaWithVirtualMemorySupported) != 0 ? 1 : 0;
  if (driver.Attribute(device, kMemDecompressAlgorithmMask) != 0) prop.flags.usage = kUsageHwDecompress;
  return prop;
}

uint64_t BytesOfHost() {
  return static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES))) *
         static_cast<uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(const Driver& driver, int device,
                                                                   bool oversubscribe) {
  size_t total = 0;
  if (driver.DeviceTotalMem(&total, device) != kSuccess)
    return absl::UnavailableError("the device tells no size");
  if (driver.Attribute(device, kVirtualMemoryManagementSupported) == 0) {
    return std::make_unique<SlabMemory>(driver, device, Bytes(static_cast<int64_t>(total)));
  }
  return VirtualMemory::Reserve(driver, device, oversubscribe);
}

bool DeviceMemory::Refuse(const char* function, Result result) {
  ++refusals_;
  if (result == kOutOfMemory) ++shortages_;
  refusal_ = absl::StrCat(function, " answered ", result, result == kOutOfMemory ? " (out of memory)" : "");
  return false;
}

absl::StatusOr<std::unique_ptr<VirtualMemory>> VirtualMemory::Reserve(const Driver& driver, int device,
                                                                      bool oversubscribe) {
  const AllocationProp prop = PropOf(driver, device);
  size_t least = 0, total = 0;
  if (driver.MemGetAllocationGranularity(&least, &prop, /*minimum*/ 0) != kSuccess ||
      !std::has_single_bit(least) || driver.DeviceTotalMem(&total, device) != kSuccess) {
    return absl::UnavailableError("the device tells no granularity");
  }
  const uint64_t granule = std::max<uint64_t>(least, static_cast<uint64_t>(kGranule.count()));
  // Twice the memory there can be, so that fragmentation of addresses never costs memory.
  const uint64_t most = total + (oversubscribe ? BytesOfHost() : 0);
  uint64_t bytes = std::min(kMostReserve, std::max(kLeastReserve, 2 * most)) / granule * granule;
  cu_address begin = 0;
  Result result = kOutOfMemory;
  for (; bytes >= kLeastReserve; bytes = bytes / 2 / granule * granule) {
    result = driver.MemAddressReserve(&begin, bytes, granule, 0, 0);
    if (result == kSuccess) break;
  }
  if (result != kSuccess) {
    return absl::ResourceExhaustedError(absl::StrCat("cuMemAddressReserve answered ", result));
  }
  return std::unique_ptr<VirtualMemory>(new VirtualMemory(driver, prop, Bytes(static_cast<int64_t>(granule)),
                                                          begin, static_cast<int64_t>(bytes / granule)));
}

VirtualMemory::VirtualMemory(const Driver& driver, const AllocationProp& prop, Bytes granule,
                             cu_address begin, int64_t count)
    : driver_(driver),
      prop_(prop),
      granule_(granule),
      handles_(static_cast<size_t>(count)),
      access_({{prop.location, kReadWrite}}) {
  SetRange(begin, static_cast<uint64_t>((granule * count).count()));
}

bool VirtualMemory::Make(Handle* handle) {
  const Result made = driver_.MemCreate(handle, SizeOf(1), &prop_, 0);
  if (made == kSuccess) {
    ++on_device_;
    return true;
  }
  Refuse("cuMemCreate", made);
  return host_allowed_ && made == kOutOfMemory && MakeInHost(handle);
}

// Anywhere on the host, which newer drivers know; else on the node next to the device, which older ones may.
bool VirtualMemory::MakeInHost(Handle* handle) {
  const int node = std::max(0, driver_.Attribute(prop_.location.id, kHostNumaId));
  Result made = kNotSupported;
  for (const cu_location location : {cu_location{kHostLocation, 0}, cu_location{kHostNumaLocation, node}}) {
    AllocationProp prop;
    prop.type = kPinnedAllocation;
    prop.location = location;
    made = driver_.MemCreate(handle, SizeOf(1), &prop, 0);
    if (made == kSuccess) break;
  }
  if (made != kSuccess) return Refuse("cuMemCreate of the host's memory", made);
  in_host_.insert(*handle);
  Oversubscription& held = oversubscription_;
  held.in_host = static_cast<int64_t>(in_host_.size());
  held.in_host_peak = std::max(held.in_host_peak, held.in_host);
  held.on_device_full = std::max(held.on_device_full, on_device_);
  return true;
}

// Puts memory, a spare granule or a new one, behind a granule's addresses, unless some could not be taken from there.
bool VirtualMemory::Back(int64_t granule) {
  if (handles_[static_cast<size_t>(granule)] != 0) return true;
  Handle handle = 0;
  if (!spare_.empty()) {
    handle = spare_.back();
    spare_.pop_back();
  } else if (!Make(&handle)) {
    return false;
  }
  if (const Result mapped = driver_.MemMap(At(granule), SizeOf(1), 0, handle, 0); mapped != kSuccess) {
    spare_.push_back(handle);
    return Refuse("cuMemMap", mapped);
  }
  handles_[static_cast<size_t>(granule)] = handle;
  return true;
}

// What is free of the device, where the current context is its own; 0: nobody says.
uint64_t VirtualMemory::FreeBytes() const {
  int current = -1;
  size_t free = 0, total = 0;
  const bool told = driver_.CtxGetDevice(&current) == kSuccess && current == prop_.location.id &&
                    driver_.calls->cuMemGetInfo_v2(&free, &total) == kSuccess;
  return told ? free : 0;
}

// For a request that cannot be met, all that is free would be made granule by granule and given back, several
// times, and meanwhile be nobody else's. More than what is free may be had all the same: managed memory makes
// room. So the driver is asked for all of it at once.
bool VirtualMemory::MayHave(int64_t granules) {
  if (granules < kWorthAsking || host_allowed_ || SizeOf(granules) <= FreeBytes()) return true;
  Handle all = 0;
  const Result made = driver_.MemCreate(&all, SizeOf(granules), &prop_, 0);
  if (made == kSuccess) driver_.MemRelease(all);
  return made == kSuccess || Refuse("cuMemCreate", made);
}

bool VirtualMemory::Commit(int64_t first, int64_t count) {
  const int64_t shortages = this->shortages();
  if (TryCommit(first, count)) return true;
  return shortages == this->shortages() && ResortToPlain() && TryCommit(first, count);
}

// A device may promise more than it keeps: WSL2 gives no access to memory within a network card's reach, which it creates
// and maps (pytorch/pytorch issue 192330). Where some of that is in use, something else was refused. False: no other way.
bool VirtualMemory::ResortToPlain() {
  const bool is_plain = prop_.flags.rdma_capable == 0 && prop_.flags.usage == 0;
  if (is_plain || std::ranges::any_of(handles_, [](Handle handle) { return handle != 0; })) return false;
  Trim();
  prop_.flags = {};
  ForgetRefusal();
  return true;
}

bool VirtualMemory::TryCommit(int64_t first, int64_t count) {
  if (!MayHave(count - static_cast<int64_t>(spare_.size()))) return false;
  int64_t backed = 0;
  while (backed < count && Back(first + backed)) ++backed;
  if (backed == count) {
    const Result given = driver_.MemSetAccess(At(first), SizeOf(count), access_.data(), access_.size());
    if (given == kSuccess) return true;
    Refuse("cuMemSetAccess", given);
  }
  if (backed > 0) Release(first, backed);
  return false;
}

void VirtualMemory::Release(int64_t first, int64_t count) {
  for (int64_t g = first; g < first + count; ++g) {
    if (driver_.MemUnmap(At(g), SizeOf(1)) != kSuccess) continue;
    spare_.push_back(std::exchange(handles_[static_cast<size_t>(g)], 0));
  }
}

void VirtualMemory::Trim() {
  std::erase_if(spare_, [&](Handle handle) {
    if (driver_.MemRelease(handle) != kSuccess) return false;
    if (in_host_.erase(handle) == 0) --on_device_;
    return true;
  });
  oversubscription_.in_host = static_cast<int64_t>(in_host_.size());
}

Result VirtualMemory::SetAccess(int device, int flags) {
  const auto known = std::find_if(access_.begin(), access_.end(),
                                  [&](const cu_access& access) { return access.location.id == device; });
  const int before = known == access_.end() ? 0 : known->flags;
  if (device == prop_.location.id || (before | flags) == before) return kSuccess;
  const cu_access access = {{kDeviceLocation, device}, before | flags};
  for (size_t g = 0; g < handles_.size(); ++g) {
    if (handles_[g] == 0) continue;
    const Result set = driver_.MemSetAccess(At(static_cast<int64_t>(g)), SizeOf(1), &access, 1);
    if (set != kSuccess) return set;
  }
  if (known == access_.end()) {
    access_.push_back(access);
  } else {
    *known = access;
  }
  return kSuccess;
}

SlabMemory::SlabMemory(const Driver& driver, int device, Bytes total)
    : driver_(driver), device_(device), total_(std::min(total, kLargestRange)) {
  int count = 0;
  may_have_peers_ = driver_.DeviceGetCount(&count) != kSuccess;
  for (int other = 0; other < count; ++other) {
    if (other != device && driver_.MayReach(other, device)) may_have_peers_ = true;
  }
}

bool SlabMemory::Commit(int64_t first, int64_t count) {
  if (taken_ == 0 && first + count <= planned_) Take();
  return first + count <= taken_;
}

// The driver's pool keeps what the job used until now; it gives that back first. The driver takes memory
// where the current context is, which need not be here. What it refuses is asked for again with the next plan.
void SlabMemory::Take() {
  int current = -1;
  if (lost_ || driver_.CtxGetDevice(&current) != kSuccess || current != device_) return;
  cu_pool pool = nullptr;
  if (driver_.DeviceGetDefaultMemPool(&pool, device_) == kSuccess) driver_.calls->cuMemPoolTrimTo(pool, 0);
  const int64_t granules = std::exchange(planned_, 0);
  const Bytes bytes = kGranule * granules;
  cu_address begin = 0;
  const Result result = driver_.calls->cuMemAlloc_v2(&begin, static_cast<size_t>(bytes.count()));
  if (result != kSuccess) {
    Refuse("cuMemAlloc", result);
    return;
  }
  taken_ = granules;
  context_ = driver_.Current();
  SetRange(begin, static_cast<uint64_t>(bytes.count()));
}

void SlabMemory::OnContextGone(cu_context context) {
  if (taken_ == 0 || context != context_) return;
  lost_ = true;
  taken_ = 0;
  SetRange(0, 0);
}

}  // namespace reprise::replay::cuda
