// Memory pools: which are served, and what the job reads of them.
#include <algorithm>
#include <cstdint>

#include "replay/cuda/core.h"

namespace reprise::replay::cuda {
namespace {

// CU_MEMPOOL_ATTR_...
enum PoolAttribute { kReservedCurrent = 5, kReservedHigh = 6, kUsedCurrent = 7, kUsedHigh = 8 };

// What is asked for in bytes that are not known here is another kind, such as CUDA 13.4's memory within a network card's
// reach.
bool IsPlain(const cu_pool_props& props) {
  if (std::ranges::any_of(props.reserved, [](unsigned char byte) { return byte != 0; })) return false;
  return props.allocation_type == kPinnedAllocation && props.handle_types == 0 &&
         props.location.type == kDeviceLocation && props.usage == 0 && props.max_bytes == 0;
}

}  // namespace

Result Core::PoolCreate(cu_pool* pool, const cu_pool_props* props) {
  const Result result = driver().cuMemPoolCreate(pool, props);
  if (result == kSuccess && IsPlain(*props)) Note([&] { pools_.Add(*pool, props->location.id); });
  return result;
}

// A pool may be destroyed with blocks alive, which live on; so do ours. What it kept goes back to the driver,
// for other processes too: which granules that are does not show, so all that are free do, but for the plan's
// where another pool came first. One that nothing was served from has kept nothing.
// It is taken out before the driver destroys it: after that another thread may be given the same handle, for a
// pool that is not served.
Result Core::PoolDestroy(cu_pool pool) {
  const std::optional<PoolTable::Pool> known = pools_.Take(pool);
  const Result result = driver().cuMemPoolDestroy(pool);
  if (result != kSuccess && known) pools_.PutBack(*known);
  CurrentPoolsChanged();  // a current pool that is destroyed gives way to the default one
  Device* const device = result == kSuccess && known ? KnownDevice(known->device) : nullptr;
  if (device == nullptr || captures_.load() != 0) return result;
  Note([&] {
    const Engine::Guard guard = device->Lock();
    if (!device->pool_use(guard, known->owner).served) return;
    device->engine().GiveBack(guard, /*plan_too=*/device->IsFirst(guard, known->owner));
  });
  return result;
}

void Core::CurrentPoolsChanged() {
  const int unknown = -1 - (++pool_changes_ & 0xffffff);
  for (int i = 0; i < device_count_.load(std::memory_order_acquire); ++i) in_use_[i]->current_pool = unknown;
}

// What cuMemAllocAsync would take from.
Owner Core::CurrentPool(Device& device) {
  int unknown = device.current_pool.load(std::memory_order_acquire);
  if (unknown >= 0) return static_cast<Owner>(unknown);
  cu_pool handle = nullptr;
  if (driver_.DeviceGetMemPool(&handle, device.ordinal()) != kSuccess) return kNoPool;
  const std::optional<PoolTable::Pool> pool = pools_.Find(handle);
  const Owner owner = pool ? pool->owner : kNoPool;
  device.current_pool.compare_exchange_strong(unknown, owner);
  return owner;
}

Result Core::PoolGetAttribute(cu_pool pool, int attribute, void* value) {
  const Result result = driver().cuMemPoolGetAttribute(pool, attribute, value);
  const std::optional<PoolTable::Pool> known = pools_.Find(pool);
  if (result != kSuccess || !known || attribute < kReservedCurrent || attribute > kUsedHigh) return result;
  Device* const device = DeviceNumber(known->device);
  if (device == nullptr) return result;
  const Engine::Guard guard = device->Lock();
  Device::PoolUse& use = device->pool_use(guard, known->owner);
  const int64_t reserved = device->Reserved(guard, known->owner);
  use.reserved_high = std::max(use.reserved_high, reserved);
  const int64_t ours[] = {reserved, use.reserved_high, use.used, use.used_high};
  *static_cast<uint64_t*>(value) += static_cast<uint64_t>(ours[attribute - kReservedCurrent]);
  return result;
}

// The high marks can be set to nothing but 0, which means what is current.
Result Core::PoolSetAttribute(cu_pool pool, int attribute, void* value) {
  const Result result = driver().cuMemPoolSetAttribute(pool, attribute, value);
  const std::optional<PoolTable::Pool> known = pools_.Find(pool);
  if (result != kSuccess || !known) return result;
  Device* const device = DeviceNumber(known->device);
  if (device == nullptr) return result;
  const Engine::Guard guard = device->Lock();
  Device::PoolUse& use = device->pool_use(guard, known->owner);
  if (attribute == kReservedHigh) use.reserved_high = device->Reserved(guard, known->owner);
  if (attribute == kUsedHigh) use.used_high = use.used;
  return result;
}

// What is to be kept is promised to be there afterwards, whatever could be given back. And what the host has waited
// for is given back at once: a job that asks for it has synchronised just before. Where nothing is to be kept all that
// is free goes: of a pool that was not served first none of it shows. One that nothing was served from has kept nothing.
Result Core::PoolTrim(cu_pool pool, size_t keep) {
  const Result result = driver().cuMemPoolTrimTo(pool, keep);
  const std::optional<PoolTable::Pool> known = pools_.Find(pool);
  Device* const device = result == kSuccess && known ? DeviceNumber(known->device) : nullptr;
  if (device == nullptr || captures_.load() != 0) return result;
  const Engine::Guard guard = device->Lock();
  if (!device->pool_use(guard, known->owner).served) return result;
  const Bytes beyond(device->Reserved(guard, known->owner) -
                     static_cast<int64_t>(std::min<size_t>(keep, INT64_MAX)));
  if (keep != 0 && beyond <= Bytes(0)) return result;
  device->engine().GiveBack(guard, /*plan_too=*/true, keep == 0 ? kAllOfIt : beyond);
  return result;
}

Result Core::PoolSetAccess(cu_pool pool, const cu_access* access, size_t count) {
  const Result result = driver().cuMemPoolSetAccess(pool, access, count);
  const std::optional<PoolTable::Pool> known = pools_.Find(pool);
  Device* const device = result == kSuccess && known ? DeviceNumber(known->device) : nullptr;
  if (device == nullptr) return result;
  for (size_t i = 0; i < count; ++i) {
    if (access[i].location.type != kDeviceLocation) continue;
    const Result ours = AllowPool(*device, access[i].location.id, access[i].flags);
    if (ours != kSuccess) return ours;
  }
  return result;
}

// Another pool of the device may have been opened to the same peer, so nothing is taken away.
Result Core::AllowPool(Device& device, int peer, int flags) {
  if (flags == 0) return kSuccess;
  const Engine::Guard guard = device.Lock();
  if (peer != device.ordinal()) AddPeer(peer);
  return device.memory().SetAccess(peer, flags);
}

}  // namespace reprise::replay::cuda
