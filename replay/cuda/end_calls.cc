// What ends: contexts, streams, captures. And peers, who begin.
//
// Whatever fails in here, the driver's call is made, once, and what ends is not named to the driver again. So the lock is
// the engine's own, without what else is tended at a request.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/not_cancelled.h"
#include "replay/cuda/core.h"

namespace reprise::replay::cuda {

Device* Core::KnownDevice(int ordinal) const {
  if (ordinal < 0 || ordinal >= kMostDevices) return nullptr;
  return by_ordinal_[static_cast<size_t>(ordinal)].load(std::memory_order_acquire);
}

// Synchronous blocks of a context are gone with it, the driver's too. `reset`: it was the primary one, and whoever ends
// that may have done with the device: what is free is given back. So it is where the driver has taken the memory
// already, or that would count as held.
void Core::DropContext(Device& device, cu_context context, bool reset) {
  const Engine::Guard guard = device.engine().Lock();
  const std::vector<Stream> gone = device.DropContext(guard, context, streams_);
  {
    const std::lock_guard lock(outside_mutex_);
    std::erase_if(outside_, [&](const auto& entry) {
      const Outside& block = entry.second;
      const bool is_gone =
          block.device == &device && std::find(gone.begin(), gone.end(), block.info.stream) != gone.end();
      if (is_gone) device.engine().FreeOutside(guard, block.info, kEveryStream);
      return is_gone;
    });
  }
  if (reset || device.memory().lost()) device.engine().GiveBack(guard, /*plan_too=*/true);
}

// Where something of ours is in a context; null: there is nothing. The driver is not asked: once work has failed in a
// context it may answer with that error, and a handle may be of a context that has ended already.
Device* Core::DeviceThatKnows(cu_context context) const {
  for (int i = 0; context != nullptr && i < device_count_.load(std::memory_order_acquire); ++i) {
    if (in_use_[i]->Knows(in_use_[i]->engine().Lock(), context)) return in_use_[i];
  }
  return nullptr;
}

// A device's primary context while it is active, else null. The driver tells it only to those who retain it:
// under the lock, or ours might be the last reference. Once work has failed it may tell nothing any more.
cu_context Core::Primary(int ordinal) {
  if (ordinal < 0 || ordinal >= kMostDevices) return nullptr;
  const auto lock = LockPrimary(ordinal);
  cu_context& known = primary_contexts_[static_cast<size_t>(ordinal)];
  unsigned flags = 0;
  int active = 0;
  cu_context primary = nullptr;
  if (driver_.DevicePrimaryCtxGetState(ordinal, &flags, &active) != kSuccess) return known;
  if (active == 0) return nullptr;
  if (driver().cuDevicePrimaryCtxRetain(&primary, ordinal) != kSuccess) return known;
  driver().cuDevicePrimaryCtxRelease_v2(ordinal);
  return known = primary;
}

Core::Visit Core::VisitPrimary(int ordinal) {
  const auto lock = LockPrimary(ordinal);
  const cu_context primary = Primary(ordinal);
  return primary == nullptr ? Visit() : visits_.Begin(primary);
}

// `call` ends the context, in which the device has something of ours. All that was queued there is done before, but for
// a context where something is being captured: the wait would only make that void, and the end may be refused. And its
// streams are taken out: while it ends another thread may be given the handle of one of them, and none may use one. Its
// blocks stay until it is gone: the driver may refuse. What is under its handle then is its own, for nothing is added
// there while it is suspended.
template <typename Call>
Result Core::End(cu_context context, Device* device, bool reset, Call call) {
  StreamTable::Taken streams;
  std::vector<uint64_t> captures;
  if (context != nullptr) Note([&] { captures = capture_table_.InContext(context); });
  if (device != nullptr) {
    if (const ContextScope scope(driver_, context); captures.empty() && scope.ok()) driver_.CtxSynchronize();
    Note([&] {
      const Engine::Guard guard = device->engine().Lock();
      device->streams(guard).Suspend(context);
      streams = streams_.TakeAll(*device, device->streams(guard).OfContext(context));
    });
  }
  const bool peer = TakePeer(context);
  visits_.Await(context);
  const Result result = call();
  Note([&] {
    if (result == kSuccess) {
      DropCaptures(captures);
      if (device != nullptr) DropContext(*device, context, reset);
      return;
    }
    if (device != nullptr) device->streams(device->engine().Lock()).Resume(context);
    if (peer) AddPeer(context);
    for (const auto& [key, place] : streams) streams_.Add(key, place);
  });
  return result;
}

Result Core::EndContext(cu_context context, Result (*call)(cu_context)) {
  const NotCancelled not_cancelled;
  const Ending ending = BeginEnding(context);
  return End(context, DeviceThatKnows(context), /*reset=*/false, [&] { return call(context); });
}

Result Core::ResetPrimary(int ordinal, Result (*call)(int)) {
  const NotCancelled not_cancelled;
  const auto lock = LockPrimary(ordinal);
  const cu_context primary = Primary(ordinal);
  const Ending ending = BeginEnding(primary);
  Device* const device = primary == nullptr ? nullptr : KnownDevice(ordinal);
  return End(primary, device, /*reset=*/true, [&] { return call(ordinal); });
}

// The last release ends the context. Where nobody says whether this was the last, it stays suspended, and its streams are
// forgotten, whose handles may be those of others.
Result Core::ReleasePrimary(int ordinal, Result (*call)(int)) {
  const NotCancelled not_cancelled;
  const auto lock = LockPrimary(ordinal);
  const cu_context primary = Primary(ordinal);
  if (primary == nullptr) return call(ordinal);
  const Ending ending = BeginEnding(primary);
  Device* const device = KnownDevice(ordinal);
  std::vector<uint64_t> captures;
  Note([&] {
    if (device != nullptr) device->streams(device->engine().Lock()).Suspend(primary);
    captures = capture_table_.InContext(primary);
  });
  visits_.Await(primary);
  ++releasing_;
  streams_.Doubt();
  const Result result = call(ordinal);
  unsigned flags = 0;
  int active = 0;
  const bool told = driver_.DevicePrimaryCtxGetState(ordinal, &flags, &active) == kSuccess;
  Note([&] {
    if (told && active == 0) DropCaptures(captures);
    if (device == nullptr) return;
    if (told && active == 0) return DropContext(*device, primary, /*reset=*/true);
    const Engine::Guard guard = device->engine().Lock();
    DeviceStreams& streams = device->streams(guard);
    if (told) return streams.Resume(primary);
    streams_.TakeAll(*device, streams.OfContext(primary));
  });
  --releasing_;
  return result;
}

// Its last frees are ordered before anything that a later stream of the same handle does by nothing at all.
Result Core::DestroyStream(cu_stream stream, Result (*call)(cu_stream)) {
  const std::optional<StreamTable::Place> place = streams_.Take({stream});
  if (place) {
    const Engine::Guard guard = place->device->engine().Lock();
    Note([&] { place->device->engine().order(guard)->Retire(place->stream); });
    place->device->streams(guard).Remove(place->stream);
  }
  std::vector<uint64_t> captures;
  Note([&] { captures = capture_table_.InStream({stream}); });
  const Result result = call(stream);
  if (result == kSuccess) DropCaptures(captures);
  return result;
}

void Core::AddPeer(cu_context context) {
  const std::lock_guard lock(peer_contexts_mutex_);
  if (std::find(peer_contexts_.begin(), peer_contexts_.end(), context) == peer_contexts_.end())
    peer_contexts_.push_back(context);
}

// What frees a block on a stream while nothing may be waited for may still use it when something may: where that is another
// context than the block's, it is waited for as a peer is. Not a green one, whose end nobody would hear of: a wait for the
// primary one is for those as well. The stream is not captured, so it may be asked, but not the legacy one.
void Core::AddUser(Device& device, cu_address block, cu_stream stream, cu_context user) {
  {
    const Engine::Guard guard = device.Lock();
    const auto found = device.engine().Find(guard, Offset(device.OffsetOf(block)));
    if (!found || device.ContextOf(guard, found->info.stream) == user) return;
  }
  const int ordinal = DeviceIn(user);
  const auto is_known = [&] {
    return DeviceThatKnows(user) != nullptr || (stream != kLegacyStream && !driver_.InGreenContext(stream));
  };
  if (user != Primary(ordinal) && is_known()) {
    AddPeer(user);
  } else {
    AddPeer(ordinal);
  }
}

// True: it was one.
bool Core::TakePeer(cu_context context) {
  const std::lock_guard lock(peer_contexts_mutex_);
  return std::erase(peer_contexts_, context) > 0;
}

// The contexts of all, as far as there are any. Those of devices in their order: who visits one may have to wait for
// the end of another, which may have to wait for visits.
std::vector<Core::Visit> Core::Peers() {
  std::vector<Visit> visits;
  {
    const std::lock_guard lock(peer_contexts_mutex_);
    for (const cu_context context : peer_contexts_) visits.push_back(visits_.Begin(context));
  }
  for (uint64_t peers = peers_.load(); peers != 0; peers &= peers - 1) {
    if (Visit primary = VisitPrimary(std::countr_zero(peers))) visits.push_back(std::move(primary));
  }
  return visits;
}

Core::Ending Core::BeginEnding(cu_context context) {
  Ending ending;
  Note([&] { ending = visits_.BeginEnding(context); });
  return ending;
}

// Blocks of the peer's device are from now on within reach of the current one. Of what the driver does not tell it is not
// known that they are.
Result Core::AllowPeer(cu_context peer, int flags) {
  const int current = CurrentDevice();
  const int ordinal = DeviceIn(peer);
  const cu_context context = driver_.Current();
  if (current < 0 || ordinal < 0 || context == nullptr) return kUnknown;
  Device* const device = DeviceNumber(ordinal);
  if (context == Primary(current)) {
    AddPeer(current);
  } else {
    AddPeer(context);
  }
  if (device == nullptr) return kSuccess;  // nothing of ours is there
  const Engine::Guard guard = device->engine().Lock();
  return device->memory().SetAccess(current, flags);
}

// Other threads may have found that nothing is captured, and be about to record an event, or to wait. That is
// done under a device's lock, or that for waiting; who takes one from now on sees the capture.
void Core::FinishCallsUnderWay() {
  for (int i = 0; i < device_count_.load(std::memory_order_acquire); ++i) in_use_[i]->engine().Lock();
  const std::unique_lock waiting(waiting_);
}

CaptureTable::Capture Core::CaptureOn(cu_stream stream, DefaultStream means) const {
  CaptureTable::Capture capture = {KeyOf(stream, means)};
  capture.context = capture.origin.context;
  if (capture.context == nullptr) driver_.StreamGetCtx(capture.origin.handle, &capture.context);
  return capture;
}

// Whatever the driver says: a stream that is not being captured any more has ended its capture.
Result Core::EndCapture(cu_stream stream, void** graph, DefaultStream means) {
  const Result result = means == DefaultStream::kLegacy ? driver().cuStreamEndCapture(stream, graph)
                                                        : driver().cuStreamEndCapture_ptsz(stream, graph);
  if (!Capturing(stream, means) && capture_table_.Take(KeyOf(stream, means))) --captures_;
  Note([&] { FreeParked(); });
  return result;
}

}  // namespace reprise::replay::cuda
