// Allocation and free, in stream order and without.
#include <utility>

#include "replay/core_log.h"
#include "replay/cuda/core.h"

namespace reprise::replay::cuda {
namespace {

// What cudaMalloc is seen to give.
constexpr Bytes kAlignment{512};
// A caching allocator asks for whole segments of this, or multiples.
constexpr size_t kSegment = size_t{2} << 20;

}  // namespace

// `device`'s lock is held.
cu_address Core::Served(Device& device, const Engine::Guard& guard, Offset offset,
                        const PoolTable::Pool* pool) {
  if (pool != nullptr) {
    device.engine().SetOwner(guard, offset, pool->owner);
    device.CountPool(guard, pool->owner, device.engine().UsableSize(guard, offset));
  }
  return device.AddressOf(offset);
}

template <typename Real>
Result Core::Serve(Device& device, cu_address* out, Bytes bytes, Stream stream, const PoolTable::Pool* pool,
                   Real real) {
  BlockInfo left;
  {
    const Engine::Guard guard = device.Lock();
    if (const auto offset = device.engine().Allocate(guard, bytes, kAlignment, stream, &left)) {
      *out = Served(device, guard, *offset, pool);
      return kSuccess;
    }
  }
  if (const std::optional<cu_address> address = ServeAfterWait(device, left, pool)) {
    *out = *address;
    return kSuccess;
  }
  return PassRecorded(device, out, left, real);
}

// Memory has run out, or its order does not allow what is free. Where something free may still be in use by
// the device, the host waits for it, as the driver does, and asks once more; what is then free goes back to
// the driver.
std::optional<cu_address> Core::ServeAfterWait(Device& device, const BlockInfo& left,
                                               const PoolTable::Pool* pool) {
  if (!MayServe()) return std::nullopt;
  StreamOrder::Snapshot snapshot;
  {
    const Engine::Guard guard = device.Lock();
    if (device.engine().committed(guard) == device.engine().placed(guard)) return std::nullopt;
    snapshot = device.engine().order(guard)->Take();
  }
  ++device.memory_waits;
  if (driver_.CtxSynchronize() != kSuccess) return std::nullopt;
  const Engine::Guard guard = device.Lock();
  device.engine().order(guard)->Completed(snapshot);
  if (const auto offset = device.engine().PlaceAgain(guard, left, kAlignment)) {
    return Served(device, guard, *offset, pool);
  }
  device.engine().GiveBack(guard, /*plan_too=*/true);
  return std::nullopt;
}

template <typename Real>
Result Core::PassRecorded(Device& device, cu_address* out, const BlockInfo& left, Real real) {
  const Result result = real();
  const Engine::Guard guard = device.Lock();
  if (result != kSuccess) {
    device.engine().DropOutside(guard, left);
    return result;
  }
  device.engine().KeepOutside(guard, left, kAlignment);
  const std::lock_guard lock(outside_mutex_);
  outside_[*out] = {&device, left};
  return result;
}

Result Core::AllocAsync(cu_address* out, size_t bytes, cu_pool pool, cu_stream stream, DefaultStream means) {
  const auto real = [&] {
    if (pool != nullptr) {
      return means == DefaultStream::kLegacy
                 ? driver().cuMemAllocFromPoolAsync(out, bytes, pool, stream)
                 : driver().cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream);
    }
    return means == DefaultStream::kLegacy ? driver().cuMemAllocAsync(out, bytes, stream)
                                           : driver().cuMemAllocAsync_ptsz(out, bytes, stream);
  };
  if (out == nullptr || bytes == 0 || bytes > static_cast<size_t>(INT64_MAX / 2)) return real();
  const std::optional<StreamTable::Place> place = PlaceOf(stream, means);
  if (!place) return real();
  Device& device = *place->device;
  if (!MayServe()) {
    if (captures_.load() != 0) ++device.capture_passes;
    return real();
  }
  device.others.fetch_add(1, std::memory_order_relaxed);
  const std::optional<PoolTable::Pool> from = pool == nullptr ? CurrentPool(device) : pools_.Find(pool);
  const Bytes size(static_cast<int64_t>(bytes));
  const bool plain = from && from->device == device.ordinal();
  bool room = plain;
  if (plain && from->max_bytes != 0) {
    const Engine::Guard guard = device.Lock();
    room = static_cast<uint64_t>(device.pool_use(guard, from->owner).used) + bytes <= from->max_bytes;
  }
  if (room) return Serve(device, out, size, place->stream, &*from, real);
  BlockInfo left;
  {
    const Engine::Guard guard = device.Lock();
    left = device.engine().PassOutside(guard, size, kAlignment, place->stream);
  }
  return PassRecorded(device, out, left, real);
}

// Synchronous blocks may be exported to other processes, which ours cannot be: they are served only with a
// plan, and in a process that has not exported any.
Result Core::Alloc(cu_address* out, size_t bytes) {
  const auto real = [&] { return driver().cuMemAlloc_v2(out, bytes); };
  if (out == nullptr || bytes == 0 || bytes > static_cast<size_t>(INT64_MAX / 2)) return real();
  const cu_context context = driver_.Current();
  Device* const device = DeviceOf(context);
  if (device == nullptr) return real();
  if (!MayServe()) {
    if (captures_.load() != 0) ++device->capture_passes;
    return real();
  }
  (bytes % kSegment == 0 ? device->segments : device->others).fetch_add(1, std::memory_order_relaxed);
  const Bytes size(static_cast<int64_t>(bytes));
  BlockInfo left;
  Stream stream;
  {
    const Engine::Guard guard = device->Lock();
    stream = device->SynchronousStream(guard, context);
    const bool serve = device->engine().serving(guard) && !ipc_used_;
    if (!serve) left = device->engine().PassOutside(guard, size, kAlignment, stream);
    if (!serve) stream = Stream{};
  }
  return IsEveryStream(stream) ? Serve(*device, out, size, stream, nullptr, real)
                               : PassRecorded(*device, out, left, real);
}

// Rows of pitch bytes, as the device aligns textures; the driver alone knows by how much, so it is asked for
// the pitch of a block that it makes itself.
Result Core::AllocPitch(cu_address* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  const Result result = driver().cuMemAllocPitch_v2(out, pitch, width, height, element);
  Device* const device = DeviceOf(driver_.Current());
  if (result != kSuccess || device == nullptr || !MayServe()) return result;
  device->others.fetch_add(1, std::memory_order_relaxed);
  const Bytes size(static_cast<int64_t>(*pitch * height));
  BlockInfo left;
  {
    const Engine::Guard guard = device->Lock();
    left = device->engine().PassOutside(guard, size, kAlignment,
                                        device->SynchronousStream(guard, driver_.Current()));
  }
  return PassRecorded(*device, out, left, [] { return kSuccess; });
}

Result Core::Free(cu_address block) {
  if (Device* const device = FindOwner(block)) return FreeOurs(*device, block);
  return FreeOutside(block, kEveryStream, [&] { return driver().cuMemFree_v2(block); });
}

// Law 5: the block is free for others once the device has finished everything queued before, as with the
// driver, which waits for that here as well. What it saves is unmapping and mapping again.
Result Core::FreeOurs(Device& device, cu_address block) {
  const Offset offset(device.OffsetOf(block));
  cu_context context = driver_.Current();
  if (context == nullptr) return kInvalidContext;
  StreamOrder::Snapshot snapshot;
  {
    const Engine::Guard guard = device.Lock();
    const std::optional<Engine::Found> found = device.engine().Find(guard, offset);
    if (!found || found->begin != offset) {
      device.engine().Free(guard, offset, kEveryStream);  // counts it
      return kInvalidValue;
    }
    if (!IsEveryStream(found->info.stream)) context = device.streams(guard).context(found->info.stream);
    snapshot = device.engine().order(guard)->Take();
  }
  const Result waited = WaitForContext(device, context);
  if (waited != kSuccess && waited != kDeinitialized) return waited;
  const Engine::Guard guard = device.Lock();
  device.engine().order(guard)->Completed(snapshot);
  const std::optional<Engine::Found> found = device.engine().Find(guard, offset);
  if (found)
    device.CountPool(guard, found->info.owner, Bytes(-device.engine().UsableSize(guard, offset).count()));
  return device.engine().Free(guard, offset, kEveryStream) ? waited : kInvalidValue;
}

Result Core::WaitForContext(Device& device, cu_context context) {
#ifdef REPRISE_BREAK_SYNC_FREE  // in a test's own build alone: shows that the test would notice
  return kSuccess;
#endif
  const ContextScope scope(driver_, context);
  return driver_.CtxSynchronize();
}

// The block is taken out before the driver frees it: after that another thread may be given the same address.
template <typename Real>
Result Core::FreeOutside(cu_address block, Stream stream, Real real) {
  std::optional<Outside> known;
  {
    const std::lock_guard lock(outside_mutex_);
    if (const auto found = outside_.find(block); found != outside_.end()) {
      known = found->second;
      outside_.erase(found);
    }
  }
  const Result result = real();
  if (!known) return result;
  if (result == kSuccess || result == kDeinitialized) {
    const Engine::Guard guard = known->device->Lock();
    known->device->engine().FreeOutside(guard, known->info, stream);
  } else {
    const std::lock_guard lock(outside_mutex_);
    outside_[block] = *known;
  }
  return result;
}

Result Core::FreeAsync(cu_address block, cu_stream stream, DefaultStream means) {
  const auto real = [&] {
    return means == DefaultStream::kLegacy ? driver().cuMemFreeAsync(block, stream)
                                           : driver().cuMemFreeAsync_ptsz(block, stream);
  };
  Device* const device = FindOwner(block);
  const std::optional<StreamTable::Place> place = block == 0 ? std::nullopt : PlaceOf(stream, means);
  if (device == nullptr) {
    if (!place) return real();
    return FreeOutside(block, place->stream, real);
  }
  // A graph may free only what a graph has allocated.
  if (Capturing(stream, means)) return kInvalidValue;
  if (!place) {
    cu_context context = nullptr;
    const StreamKey key = KeyOf(stream, means);
    const Result result = driver_.StreamGetCtx(key.handle, &context);
    return result != kSuccess ? result : kInvalidValue;
  }
  // Another device's stream has no number here: what it has queued is waited for instead.
  if (place->device != device) return FreeOurs(*device, block);
  const Offset offset(device->OffsetOf(block));
  const Engine::Guard guard = device->Lock();
  const std::optional<Engine::Found> found = device->engine().Find(guard, offset);
  if (found && found->begin == offset) {
    device->CountPool(guard, found->info.owner, Bytes(-device->engine().UsableSize(guard, offset).count()));
  }
  return device->engine().Free(guard, offset, place->stream) ? kSuccess : kInvalidValue;
}

// What the arena holds and no block uses would be free without us.
Result Core::GetInfo(size_t* free, size_t* total) {
  const Result result = driver().cuMemGetInfo_v2(free, total);
  int ordinal = -1;
  if (result != kSuccess || free == nullptr || total == nullptr ||
      driver_.CtxGetDevice(&ordinal) != kSuccess || ordinal < 0 || ordinal >= kMostDevices) {
    return result;
  }
  Device* const device = by_ordinal_[static_cast<size_t>(ordinal)].load(std::memory_order_acquire);
  if (device == nullptr) return result;
  const Engine::Guard guard = device->Lock();
  const Bytes unused = device->engine().committed(guard) - device->engine().placed(guard);
  *free = std::min(*total, *free + static_cast<size_t>(unused.count()));
  return result;
}

}  // namespace reprise::replay::cuda
