// What ends: contexts, streams, captures. And peers, who begin.
#include <vector>

#include "replay/cuda/core.h"

namespace reprise::replay::cuda {

// Blocks of a context are gone with it. `release`: so is the memory behind them.
void Core::DropContext(Device& device, cu_context context, bool release) {
  streams_.TakeIf([&](const StreamKey& key, const StreamTable::Place& place) {
    return place.device == &device && (key.context == context || [&] {
             const Engine::Guard guard = device.Lock();
             return device.streams(guard).context(place.stream) == context;
           }());
  });
  const Engine::Guard guard = device.Lock();
  device.DropContext(guard, context);
  if (release) device.engine().GiveBack(guard, /*plan_too=*/true);
}

Device* Core::DeviceOfEnding(cu_context context) {
  int ordinal = -1;
  const ContextScope scope(driver_, context);
  if (driver_.CtxGetDevice(&ordinal) != kSuccess || ordinal < 0 || ordinal >= kMostDevices) return nullptr;
  Device* const device = by_ordinal_[static_cast<size_t>(ordinal)].load(std::memory_order_acquire);
  if (device != nullptr) driver_.CtxSynchronize();
  return device;
}

Result Core::EndContext(cu_context context, Result (*call)(cu_context)) {
  Device* const device = context == nullptr ? nullptr : DeviceOfEnding(context);
  const Result result = call(context);
  if (result == kSuccess && device != nullptr) DropContext(*device, context, /*release=*/false);
  return result;
}

// Everything on the device goes, so the arena's memory is given back while it still can be.
Result Core::ResetPrimary(int ordinal, Result (*call)(int)) {
  Device* const device = ordinal >= 0 && ordinal < kMostDevices
                             ? by_ordinal_[static_cast<size_t>(ordinal)].load(std::memory_order_acquire)
                             : nullptr;
  unsigned flags = 0;
  int active = 0;
  cu_context primary = nullptr;
  if (device != nullptr && driver_.DevicePrimaryCtxGetState(ordinal, &flags, &active) == kSuccess &&
      active != 0 && driver_.DevicePrimaryCtxRetain(&primary, ordinal) == kSuccess) {
    driver().cuDevicePrimaryCtxRelease_v2(ordinal);
    DeviceOfEnding(primary);  // waits
    DropContext(*device, primary, /*release=*/true);
  }
  return call(ordinal);
}

// The last release ends the context.
Result Core::ReleasePrimary(int ordinal, Result (*call)(int)) {
  Device* const device = ordinal >= 0 && ordinal < kMostDevices
                             ? by_ordinal_[static_cast<size_t>(ordinal)].load(std::memory_order_acquire)
                             : nullptr;
  unsigned flags = 0;
  int active = 0;
  cu_context primary = nullptr;
  if (device != nullptr && driver_.DevicePrimaryCtxGetState(ordinal, &flags, &active) == kSuccess &&
      active != 0 && driver_.DevicePrimaryCtxRetain(&primary, ordinal) == kSuccess) {
    driver().cuDevicePrimaryCtxRelease_v2(ordinal);
  }
  const Result result = call(ordinal);
  if (result == kSuccess && primary != nullptr &&
      driver_.DevicePrimaryCtxGetState(ordinal, &flags, &active) == kSuccess && active == 0) {
    DropContext(*device, primary, /*release=*/true);
  }
  return result;
}

// Its last frees are ordered before anything that a later stream of the same handle does by nothing at all.
Result Core::DestroyStream(cu_stream stream, Result (*call)(cu_stream)) {
  const std::optional<StreamTable::Place> place = streams_.Take({stream});
  if (place) {
    const Engine::Guard guard = place->device->Lock();
    place->device->engine().order(guard)->Retire(place->stream);
    place->device->streams(guard).Remove(place->stream);
  }
  return call(stream);
}

// Blocks of the peer's device are from now on within reach of the current one.
Result Core::AllowPeer(cu_context peer, int flags) {
  int current = -1;
  if (driver_.CtxGetDevice(&current) != kSuccess) return kInvalidContext;
  Device* const device = DeviceOf(peer);
  if (device == nullptr) return kSuccess;
  const Engine::Guard guard = device->Lock();
  device->memory().SetAccess(current, flags);
  return kSuccess;
}

// Whatever the driver says, a stream that was being captured and is not any more has ended its capture.
Result Core::EndCapture(cu_stream stream, void** graph, DefaultStream means) {
  const bool was = Capturing(stream, means);
  const Result result = means == DefaultStream::kLegacy ? driver().cuStreamEndCapture(stream, graph)
                                                        : driver().cuStreamEndCapture_ptsz(stream, graph);
  if (was && !Capturing(stream, means)) --captures_;
  return result;
}

}  // namespace reprise::replay::cuda
