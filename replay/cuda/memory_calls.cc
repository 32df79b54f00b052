// Allocation and free, in stream order and without.
#include <fmt/format.h>

#include <algorithm>

#include "base/not_cancelled.h"
#include "replay/core/log.h"
#include "replay/cuda/core.h"

namespace reprise::replay::cuda {
namespace {

// A caching allocator asks for whole segments of this, or multiples.
constexpr size_t kSegment = size_t{2} << 20;

}  // namespace

template <typename Real>
Result Core::Serve(Device& device, cu_address* out, Engine::Request request, Real real) {
  BlockInfo left;
  bool short_of_memory = false;  // what is refused for another reason is not to be had by a wait
  {
    const Engine::Guard guard = device.Lock();
    // What a capture that has begun meanwhile may forbid: it has waited for whoever has the lock.
    if (captures_.load() != 0 || !device.Serves(guard, request.stream)) request.place = false;
    if (request.place && !StandIn(guard, device, request.stream)) request.place = false;
    const int64_t shortages = device.memory().shortages();
    const Offset offset = device.engine().Allocate(guard, request, &left);
    if (offset != Engine::kNowhere) {
      device.CountIn(guard, request.owner, request.bytes);
      *out = device.AddressOf(offset);
      return kSuccess;
    }
    short_of_memory = device.memory().shortages() != shortages;
  }
  if (short_of_memory) {
    if (const auto offset = ServeAfterWait(device, request, left)) {
      *out = device.AddressOf(*offset);
      return kSuccess;
    }
  }
  return PassRecorded(device, out, request, left, real);
}

// Memory has run out. What is free may still be in use by the device: the host waits for it, as the driver
// does, and asks once more; then without what the driver's own pool keeps; then all that is free goes back to
// the driver.
std::optional<Offset> Core::ServeAfterWait(Device& device, const Engine::Request& request,
                                           const BlockInfo& left) {
  if (!WaitForDevice(device, ContextOf(device, left))) return std::nullopt;
  for (const bool trimmed : {false, true}) {
    cu_pool pool = nullptr;
    if (trimmed && driver_.DeviceGetDefaultMemPool(&pool, device.ordinal()) == kSuccess) {
      driver().cuMemPoolTrimTo(pool, 0);
    }
    const Engine::Guard guard = device.Lock();
    if (const auto offset = device.engine().PlaceAgain(guard, request, left)) {
      device.CountIn(guard, left.owner, left.requested);
      return offset;
    }
    if (trimmed) device.engine().GiveBack(guard, /*plan_too=*/true);
  }
  return std::nullopt;
}

// Nobody has memory on the device. Where the job was to go on nevertheless, its block lies, as far as it has
// to, in the host's; but not one that another process or a foreign pool may have a claim to.
std::optional<Offset> Core::ServeFromHost(Device& device, const Engine::Request& request,
                                          const BlockInfo& left) {
  const bool ours = request.place || (IsEveryStream(request.stream) && !exported_);
  if (!session_->config().oversubscribe || !ours || !MayServe()) return std::nullopt;
  const Engine::Guard guard = device.Lock();
  DeviceMemory& memory = device.memory();
  if (!device.Serves(guard, request.stream)) return std::nullopt;
  const int64_t refusals = memory.refusals();
  memory.AllowHost(true);
  const std::optional<Offset> offset = device.engine().PlaceAgain(guard, request, left);
  memory.AllowHost(false);
  if (offset) {
    device.CountIn(guard, left.owner, left.requested);
    if (memory.oversubscription().in_host > 0 && !device.said_oversubscribed.exchange(true)) {
      Note([&] {
        Log(LogLevel::kWarn,
            fmt::format("device {}: its memory is full; going on in the host's, which is slow",
                        device.ordinal()));
      });
    }
  } else if (!device.said_no_host.exchange(true)) {
    Note([&] {
      Log(LogLevel::kWarn,
          fmt::format("device {}: its memory is full, and the host's cannot stand in: {}", device.ordinal(),
                      memory.refusals() != refusals ? memory.refusal() : "the arena is at its limit"));
    });
  }
  return offset;
}

// Everything that was free is known to be idle after it.
bool Core::WaitForDevice(Device& device, cu_context context) {
  const NotCancelled not_cancelled;
  const std::shared_lock waiting(waiting_);
  if (captures_.load() != 0) return false;
  const StreamOrder::Snapshot snapshot = device.TakeContext(device.Lock(), context);
  ++device.memory_waits;
  const ContextScope scope(driver_, context);
  if (!scope.ok() || driver_.CtxSynchronize() != kSuccess) return false;
  device.engine().order(device.Lock())->Completed(snapshot);
  return true;
}

// The context that a block was asked for in; of those without a stream the current one serves as well.
cu_context Core::ContextOf(Device& device, const BlockInfo& block) {
  if (IsEveryStream(block.stream)) return driver_.Current();
  return device.streams(device.Lock()).context(block.stream);
}

// What is free goes back to the driver; how much that was. nullopt: it cannot be waited for.
std::optional<Bytes> Core::GiveBackAfterWait(Device& device, cu_context context) {
  FreeParked();
  if (!WaitForDevice(device, context)) return std::nullopt;
  return device.engine().GiveBack(device.Lock(), /*plan_too=*/true);
}

// The same, whichever device is current.
std::optional<Bytes> Core::GiveBackAll(int ordinal) {
  Device* const device = KnownDevice(ordinal);
  if (device == nullptr) return std::nullopt;
  const bool is_current = CurrentDevice() == ordinal;
  Visit other = is_current ? Visit() : VisitPrimary(ordinal);
  if (!is_current && other == nullptr) {
    const Engine::Guard guard = device->Lock();
    if (const cu_context any = device->streams(guard).AnyContext()) other = visits_.Begin(any);
  }
  const cu_context context = is_current ? driver_.Current() : other.get();
  return context == nullptr ? std::nullopt : GiveBackAfterWait(*device, context);
}

template <typename Real>
Result Core::PassRecorded(Device& device, cu_address* out, const Engine::Request& request,
                          const BlockInfo& left, Real real) {
  const Result result = AskWithRoom(real, [&] { return GiveBackAfterWait(device, ContextOf(device, left)); });
  if (result == kOutOfMemory) {
    if (const auto offset = ServeFromHost(device, request, left)) {
      *out = device.AddressOf(*offset);
      return kSuccess;
    }
  }
  Note([&] {
    const Engine::Guard guard = device.Lock();
    if (result != kSuccess) {
      device.engine().DropOutside(guard, left);
      return;
    }
    BlockInfo kept = left;
    device.engine().KeepOutside(guard, kept, profiler::kDeviceAlignment);
    const std::lock_guard lock(outside_mutex_);
    outside_[*out] = {&device, kept};
  });
  return result;
}

// While something is being captured, or once nothing is served any more: then the arena still has what was free.
template <typename Real>
Result Core::PassUnserved(Device& device, size_t bytes, Real real) {
  return CountUnserved(device, bytes) ? real() : AskAgainOn(device.ordinal(), real);
}

// Whether because of a capture.
bool Core::CountUnserved(Device& device, size_t bytes) {
  const bool captured = captures_.load() != 0;
  captured ? device.CountCapturePass(bytes) : device.CountUnrecorded(bytes);
  return captured;
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
  const std::optional<StreamTable::Place> place = PlaceOf(stream, means, bytes);
  if (!place) return AskAgain(real);
  Device& device = *place->device;
  // Another device's pool takes that device's memory, and has no place in the order of this one's streams.
  const std::optional<PoolTable::Pool> known = pool == nullptr ? std::nullopt : pools_.Find(pool);
  if (known && known->device != device.ordinal()) {
    if (Device* const other = KnownDevice(known->device)) other->CountUnrecorded(bytes);
    return AskAgainOn(known->device, real);
  }
  if (!MayServe()) return PassUnserved(device, bytes, real);
  device.others.fetch_add(1, std::memory_order_relaxed);
  const Owner owner = pool == nullptr ? CurrentPool(device) : known ? known->owner : kNoPool;
  const Engine::Request request = {.bytes = Bytes(static_cast<int64_t>(bytes)),
                                   .alignment = profiler::kDeviceAlignment,
                                   .stream = place->stream,
                                   .thread = ThreadNumber(),
                                   .owner = owner,
                                   .place = owner != kNoPool};
  if (pool != nullptr && !known) return AllocFromUnserved(device, out, request, real);
  return Serve(device, out, request, real);
}

// What kind of memory a pool has that is not served its blocks alone tell: of what is not the device's, such as the host's,
// nothing is recorded.
template <typename Real>
Result Core::AllocFromUnserved(Device& device, cu_address* out, const Engine::Request& request, Real real) {
  const cu_context context = device.streams(device.Lock()).context(request.stream);
  const Result result = AskWithRoom(real, [&] { return GiveBackAfterWait(device, context); });
  if (result != kSuccess || !LiesOn(device, *out)) return result;
  Note([&] {
    BlockInfo left;
    device.engine().Allocate(device.Lock(), request, &left);
    PassRecorded(device, out, request, left, [] { return kSuccess; });
  });
  return result;
}

// Synchronous blocks may be exported to other processes, or copied to a device that is no peer, which ours,
// being mapped, cannot be: they are served only with a plan that has some, in a process that has not exported any and uses
// one device. Beside a job in stream order they are a library's, which may connect to another process late.
Result Core::Alloc(cu_address* out, size_t bytes) {
  const auto real = [&] { return driver().cuMemAlloc_v2(out, bytes); };
  if (out == nullptr || bytes == 0 || bytes > static_cast<size_t>(INT64_MAX / 2)) return real();
  const cu_context context = driver_.Current();
  Device* const device = DeviceOf(context);
  if (device == nullptr) return real();
  if (!MayServe()) return PassUnserved(*device, bytes, real);
  (bytes % kSegment == 0 ? device->segments : device->others).fetch_add(1, std::memory_order_relaxed);
  Engine::Request request = {.bytes = Bytes(static_cast<int64_t>(bytes)),
                             .alignment = profiler::kDeviceAlignment,
                             .thread = ThreadNumber()};
  std::optional<Stream> stream;
  {
    const Engine::Guard guard = device->Lock();
    stream = device->SynchronousStream(guard, context);
    request.place = device->engine().plans_without_stream(guard) && !exported_ && devices_met_ == 1;
  }
  if (!stream) {
    device->CountUnrecorded(bytes);
    return AskAgain(real);
  }
  request.stream = *stream;
  return Serve(*device, out, request, real);
}

// Rows of pitch bytes, as the device aligns textures; the driver alone knows by how much, so it is asked for
// the pitch of a block that it makes itself.
Result Core::AllocPitch(cu_address* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  const Result result =
      AskAgain([&] { return driver().cuMemAllocPitch_v2(out, pitch, width, height, element); });
  if (result == kSuccess) Note([&] { KeepPitched(out, *pitch * height); });
  return result;
}

void Core::KeepPitched(cu_address* out, size_t bytes) {
  Device* const device = DeviceOf(driver_.Current());
  if (device == nullptr) return;
  if (!MayServe()) {
    PassUnserved(*device, bytes, [] { return kSuccess; });
    return;
  }
  device->others.fetch_add(1, std::memory_order_relaxed);
  Engine::Request request = {.bytes = Bytes(static_cast<int64_t>(bytes)),
                             .alignment = profiler::kDeviceAlignment,
                             .thread = ThreadNumber(),
                             .place = false};
  BlockInfo left;
  {
    const Engine::Guard guard = device->Lock();
    const std::optional<Stream> stream = device->SynchronousStream(guard, driver_.Current());
    if (!stream) return device->CountUnrecorded(bytes);
    request.stream = *stream;
    device->engine().Allocate(guard, request, &left);
  }
  PassRecorded(*device, out, request, left, [] { return kSuccess; });
}

Result Core::Free(cu_address block) {
  Device* const device = FindOwner(block);
  if (device == nullptr)
    return FreeOutside(block, kEveryStream, [&] { return driver().cuMemFree_v2(block); });
  // Whether a capture allows a free the driver says, of nothing.
  if (captures_.load() != 0) {
    if (const Result allowed = driver().cuMemFree_v2(0); allowed != kSuccess) return allowed;
  }
  FreeParked();
  return FreeOurs(*device, block, /*in_order=*/true);
}

// Law 5: the block is free for others once the device has finished everything queued before, as with the
// driver, which waits for that here as well. What it saves is unmapping and mapping again. Of a block that
// was asked for in stream order the driver takes it that all who used it have finished, and waits for
// nothing: nor do we, where its order is one that we know.
Result Core::FreeOurs(Device& device, cu_address block, bool in_order, std::optional<BlockId> parked) {
  if (!parked && IsParked(device, block)) return kInvalidValue;
  const Offset offset(device.OffsetOf(block));
  cu_context current = nullptr;
  // Whether the driver is still there. What else it says of what is current is not this free's.
  Result waited = driver_.CtxGetCurrent(&current) == kDeinitialized ? kDeinitialized : kSuccess;
  StreamOrder::Snapshot snapshot;
  std::vector<Visit> peers;
  Visit own;
  [[maybe_unused]] BlockId id{};
  for (bool waits = false;; waits = true) {
    if (waits) peers = Peers();
    cu_context context = nullptr;
    {
      const Engine::Guard guard = device.Lock();
      const std::optional<Engine::Found> found = device.engine().Find(guard, offset);
      if (parked && (!found || found->info.id != *parked)) return kSuccess;  // it went with its context
      if (!found || found->begin != offset) {
        device.engine().Free(guard, offset, kEveryStream);  // counts it
        return kInvalidValue;
      }
      id = found->info.id;
      if (!IsEveryStream(found->info.stream) && in_order) break;
      if (!waits) continue;  // once more, with the peers, who are visited first
      context = device.ContextOf(guard, found->info.stream);
      if (context == nullptr) break;  // it is gone, and an error has kept the block
      own = visits_.TryBegin(context);
      snapshot = device.TakeContext(guard, context);
    }
    if (own != nullptr) break;
    peers.clear();  // their ends wait for these visits, and this end may wait for theirs
    visits_.AwaitEnding(context);
  }
#ifndef REPRISE_BREAK_SYNC_FREE  // in a test's own build alone: shows that the test would notice
  if (own != nullptr || !peers.empty()) {
    const std::optional<Result> finished = FinishQueued(own.get(), peers);
    if (!finished) return Park(device, block, id);
    waited = *finished;
  }
#endif
  if (waited != kSuccess && waited != kDeinitialized) return waited;
  const Engine::Guard guard = device.Lock();
  device.engine().order(guard)->Completed(snapshot);
  const std::optional<BlockInfo> freed = device.engine().FreeBlock(guard, offset, kEveryStream);
  if (freed) device.CountOut(guard, *freed);
  return freed ? waited : kInvalidValue;
}

// Waits for everything queued in the context, if there is one, and by peers. nullopt: not now. While something is being
// captured no context may be synchronised, nor can one that must not be current here.
std::optional<Result> Core::FinishQueued(cu_context context, const std::vector<Visit>& peers) {
  const NotCancelled not_cancelled;
  const ContextScope scope(driver_, context == nullptr ? driver_.Current() : context);
  const std::shared_lock waiting(waiting_);
  if (captures_.load() != 0 || !scope.ok()) return std::nullopt;
  for (const Visit& peer : peers) {
    const ContextScope in_peer(driver_, peer.get());
    if (!in_peer.ok()) return std::nullopt;
    driver_.CtxSynchronize();  // what went wrong there is not this free's
  }
  return context == nullptr ? kSuccess : driver_.CtxSynchronize();
}

// A free of the driver's own may wait for the device or not, so it cannot stand in for a wait that must not be now: the block
// stays live until one may be. To the program it is freed, and of no pool any more.
Result Core::Park(Device& device, cu_address block, BlockId id) {
  {
    const Engine::Guard guard = device.Lock();
    const auto info = device.engine().Disown(guard, Offset(device.OffsetOf(block)));
    if (info) device.CountOut(guard, *info);
  }
  const std::lock_guard lock(parked_mutex_);
  parked_.push_back({&device, block, id});
  any_parked_ = true;
  return kSuccess;
}

bool Core::IsParked(Device& device, cu_address block) {
  if (!any_parked_.load()) return false;
  const Engine::Guard guard = device.Lock();
  const std::optional<Engine::Found> found = device.engine().Find(guard, Offset(device.OffsetOf(block)));
  const std::lock_guard lock(parked_mutex_);
  return found && std::ranges::any_of(parked_, [&](const Parked& p) {
           return p.device == &device && p.id == found->info.id;
         });
}

void Core::FreeParked() {
  if (!any_parked_.load() || captures_.load() != 0) return;
  std::vector<Parked> parked;
  {
    const std::lock_guard lock(parked_mutex_);
    parked.swap(parked_);
    any_parked_ = false;
  }
  for (const Parked& p : parked) FreeOurs(*p.device, p.block, /*in_order=*/false, p.id);
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
  Note([&] {
    if (result == kSuccess || result == kDeinitialized) {
      const Engine::Guard guard = known->device->Lock();
      known->device->engine().FreeOutside(guard, known->info, stream);
    } else {
      const std::lock_guard lock(outside_mutex_);
      outside_[block] = *known;
    }
  });
  return result;
}

Result Core::FreeAsync(cu_address block, cu_stream stream, DefaultStream means) {
  const auto ask = [&](cu_address address) {
    return means == DefaultStream::kLegacy ? driver().cuMemFreeAsync(address, stream)
                                           : driver().cuMemFreeAsync_ptsz(address, stream);
  };
  const auto real = [&] { return ask(block); };
  if (block == 0) return real();
  Device* const device = FindOwner(block);
  const std::optional<StreamTable::Place> place = PlaceOf(stream, means);
  if (device == nullptr) return FreeOutside(block, place ? place->stream : kEveryStream, real);
  if (IsParked(*device, block)) return kInvalidValue;
  // A graph may free only what a graph has allocated. Whether a capture elsewhere allows a free the driver says, of
  // nothing.
  if (Capturing(stream, means)) return kInvalidValue;
  if (captures_.load() != 0) {
    if (const Result allowed = ask(0); allowed != kSuccess) return allowed;
  }
  // Another device's stream has no number here, nor has any of one that is not served: what it has queued is
  // waited for instead.
  if (!place || place->device != device) {
    cu_context context = nullptr;
    const cu_stream handle = KeyOf(stream, means).handle;
    if (const Result known = driver_.StreamGetCtx(handle, &context); known != kSuccess) return known;
    const std::optional<Result> finished = FinishQueued(context, Peers());
    if (finished && *finished != kSuccess) return *finished;
    if (!finished) AddUser(*device, block, handle, context);
    return FreeOurs(*device, block, /*in_order=*/finished.has_value());
  }
  const Engine::Guard guard = device->Lock();
  const std::optional<BlockInfo> freed =
      device->engine().FreeBlock(guard, Offset(device->OffsetOf(block)), place->stream);
  if (freed) {
    device->CountOut(guard, *freed);
    StandIn(guard, *device, place->stream);
  }
  return freed ? kSuccess : kInvalidValue;
}

// What the arena holds and can give back would be free without us. The free parts of granules in use would
// not: nobody who is told of them could have them.
Result Core::GetInfo(size_t* free, size_t* total) {
  const Result result = driver().cuMemGetInfo_v2(free, total);
  if (result != kSuccess || free == nullptr || total == nullptr) return result;
  Device* const device = KnownDevice(CurrentDevice());
  if (device == nullptr) return result;
  const Engine::Guard guard = device->Lock();
  const DeviceMemory& memory = device->memory();
  const Bytes in_host = memory.granule() * memory.oversubscription().in_host;
  const Bytes unused = std::max(Bytes(0), device->engine().idle(guard) - in_host);
  *free = std::min(*total, *free + static_cast<size_t>(unused.count()));
  return result;
}

}  // namespace reprise::replay::cuda
