#include "replay/cuda/core.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/exceptions.h"
#include "replay/core/log.h"

namespace reprise::replay::cuda {

Device* Core::DeviceNumber(int ordinal) {
  if (ordinal < 0 || ordinal >= kMostDevices) return nullptr;
  const auto index = static_cast<size_t>(ordinal);
  if (Device* const device = by_ordinal_[index].load(std::memory_order_acquire)) return device;
  const std::lock_guard lock(opening_);
  if (devices_[index] != nullptr) return devices_[index].get();
  if (std::ranges::find(refused_, ordinal, &DeviceSummary::ordinal) != refused_.end()) return nullptr;
  ++devices_met_;
  const WriteSignalsHeld signals_held;  // files are begun
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(driver_, *session_, ordinal, captures_);
  if (!device.ok()) {
    DeviceSummary& refused = refused_.emplace_back();
    refused.ordinal = ordinal;
    refused.name = driver_.NameOf(ordinal);
    refused.not_served = std::string(device.status().message());
    Log(LogLevel::kWarn,
        absl::StrCat("device ", ordinal, ": ", refused.not_served, "; its memory is left as it is"));
    return nullptr;
  }
  devices_[index] = *std::move(device);
  if (timeline_ != nullptr) timeline_->AddDevice(ordinal, devices_[index]->trace());
  AddDefaultPool(*devices_[index]);
  const int count = device_count_.load(std::memory_order_relaxed);
  in_use_[static_cast<size_t>(count)] = devices_[index].get();
  device_count_.store(count + 1, std::memory_order_release);
  by_ordinal_[index].store(devices_[index].get(), std::memory_order_release);
  return devices_[index].get();
}

// Added first: who opens it to a peer meanwhile waits until the device is known, and then opens the arena as well.
void Core::AddDefaultPool(Device& device) {
  cu_pool pool = nullptr;
  if (driver_.DeviceGetDefaultMemPool(&pool, device.ordinal()) != kSuccess) return;
  pools_.Add(pool, device.ordinal());
  if (!AllowPeersOf(pool, device)) pools_.Take(pool);
}

// To whom the job has opened the pool before the device was known. False: nobody says, or the arena cannot be.
bool Core::AllowPeersOf(cu_pool pool, Device& device) {
  int count = 0;
  if (driver_.DeviceGetCount(&count) != kSuccess) return false;
  for (int peer = 0; peer < count; ++peer) {
    if (peer == device.ordinal() || !driver_.MayReach(peer, device.ordinal())) continue;
    cu_location location = {kDeviceLocation, peer};
    int flags = 0;
    if (driver_.MemPoolGetAccess(&flags, pool, &location) != kSuccess) return false;
    if (AllowPool(device, peer, flags) != kSuccess) return false;
  }
  return true;
}

int Core::DeviceIn(cu_context context) const {
  if (context == nullptr) return -1;
  const ContextScope scope(driver_, context);
  return scope.ok() ? CurrentDevice() : -1;
}

StreamKey Core::KeyOf(cu_stream stream, DefaultStream means) const {
  if (stream == nullptr) stream = means == DefaultStream::kLegacy ? kLegacyStream : kPerThreadStream;
  if (stream == kLegacyStream) return {stream, driver_.Current()};
  if (stream == kPerThreadStream) return {stream, driver_.Current(), ThreadNumber()};
  return {stream};
}

namespace {

// What a thread asked last, because it will ask for the same again.
struct LastPlace {
  uint64_t generation = 0;  // of the table when it answered; 0: nothing asked yet
  cu_stream stream = nullptr;
  DefaultStream means{};
  cu_context context = nullptr;  // of a default stream
  StreamTable::Place place;
};

}  // namespace

std::optional<StreamTable::Place> Core::PlaceOf(cu_stream stream, DefaultStream means, size_t wanted) {
  thread_local LastPlace last;
  const cu_context current = IsDefault(stream) ? driver_.Current() : nullptr;
  const uint64_t generation = streams_.generation();
  if (last.generation == generation && last.stream == stream && last.means == means &&
      last.context == current) {
    return last.place;
  }
  const StreamKey key = KeyOf(stream, means);
  if (releasing_.load() != 0)
    return AddStream(key, wanted);  // what is known may be of a stream that has ended
  std::optional<StreamTable::Place> place = streams_.Find(key);
  if (!place) place = AddStream(key, wanted);
  if (place) last = {generation, stream, means, current, *place};
  return place;
}

// While anything is captured nothing is served, and no stream is added: to ask a captured one for more than its context and
// whether it is captured voids the capture (H200, driver 580).
std::optional<StreamTable::Place> Core::AddStream(const StreamKey& key, size_t wanted) {
  cu_context context = key.context;
  if (!IsDefault(key.handle) && driver_.StreamGetCtx(key.handle, &context) != kSuccess) return std::nullopt;
  AddCaptureUnheardOf(key, context);
  if (MayBeInGreenContext(key.handle)) {
    Device* const current = wanted > 0 ? DeviceNumber(CurrentDevice()) : nullptr;
    if (current != nullptr) CountUnserved(*current, wanted);
    return std::nullopt;
  }
  Device* const device = DeviceOf(context);
  if (device == nullptr) return std::nullopt;
  const Engine::Guard guard = device->Lock();
  if (captures_.load() != 0 || device->streams(guard).Suspended(context)) {
    if (wanted > 0) CountUnserved(*device, wanted);
    return std::nullopt;
  }
  // Two threads may meet here with a stream that neither has seen. Of another context is a stream that has ended with
  // it, and whose handle has come again.
  if (const std::optional<StreamTable::Place> known = streams_.Find(key);
      known && known->device == device && device->streams(guard).context(known->stream) == context) {
    return known;
  }
  // A job that makes its streams anew in each round is to have the same numbers in each, while it has a plan.
  device->engine().order(guard)->Refresh();
  ForgetEndedThreads(guard, *device);
  const StreamTable::Place place = {device,
                                    device->streams(guard).Add(key, context, *device->engine().order(guard))};
  streams_.Add(key, place);
  if (device->streams(guard).Blocks(place.stream)) NoteBlockingStream();
  return place;
}

// While anything is captured nobody may be asked.
bool Core::MayBeInGreenContext(cu_stream handle) {
  const std::shared_lock waiting(waiting_);  // no capture begins meanwhile
  return captures_.load() != 0 || driver_.InGreenContext(IsDefault(handle) ? kLegacyStream : handle);
}

// It began while the core was being opened. If this is not where it began, nobody will hear of its end either,
// and nothing is served any more.
void Core::AddCaptureUnheardOf(const StreamKey& key, cu_context context) {
  if (captures_.load() != 0 || !IsCapturing(key.handle)) return;
  ++captures_;
  if (!capture_table_.Add({key, context})) --captures_;
}

void Core::ForgetEndedThreads(const Engine::Guard& guard, Device& device) {
  StreamOrder& order = *device.engine().order(guard);
  for (const auto& [stream, key] : device.streams(guard).OfEndedThreads()) {
    if (!order.Quiet(stream)) continue;
    streams_.Take(key);
    order.Retire(stream);
    device.streams(guard).Remove(stream);
  }
}

bool Core::IsCapturing(cu_stream handle) const {
  int status = 0;
  // The legacy stream cannot be captured, and may not even be asked while others are.
  return handle != kLegacyStream && driver_.StreamIsCapturing(handle, &status) == kSuccess && status != 0;
}

void Core::Fail() noexcept {
  Stop();
  if (errors_.fetch_add(1) == 0) Log(LogLevel::kWarn, "an error inside Reprise; nothing more is served");
}

void Core::BeforeFork() noexcept {
  if (stacks() != nullptr) stacks()->BeforeFork();
}

void Core::AfterForkInParent() noexcept {
  if (stacks() != nullptr) stacks()->AfterForkInParent();
}

void Core::AfterForkInChild() noexcept {
  passive_ = true;
  session_->AbandonAfterFork();
  if (stacks() != nullptr) stacks()->AbandonAfterFork();
  Timeline::AbandonAfterFork();
  for (const std::unique_ptr<Device>& device : devices_) {
    if (device != nullptr) device->AbandonAfterFork();
  }
}

Summary Core::Summarize(DeviceSummary (Device::*of_device)()) {
  Summary summary = session_->NewSummary();
  summary.host_counters.errors = errors_;
  for (const std::atomic<Device*>& known : by_ordinal_) {
    if (Device* const device = known.load(std::memory_order_acquire))
      summary.devices.push_back((device->*of_device)());
  }
  if (const std::unique_lock lock(opening_, std::try_to_lock); lock.owns_lock())
    summary.devices.insert(summary.devices.end(), refused_.begin(), refused_.end());
  if (summary.devices.empty()) return summary;
  const auto busiest = std::max_element(summary.devices.begin(), summary.devices.end(),
                                        [](const DeviceSummary& a, const DeviceSummary& b) {
                                          return a.counters.live_peak < b.counters.live_peak;
                                        });
  static_cast<EngineSummary&>(summary) = *busiest;
  summary.complete = std::ranges::all_of(summary.devices, &DeviceSummary::complete);
  return summary;
}

void Core::AtExit() noexcept {
  if (!session_->InItsProcess()) return;
  for (const std::atomic<Device*>& known : by_ordinal_) {
    if (Device* const device = known.load(std::memory_order_acquire)) device->StopWaiting();
  }
  const WriteSignalsHeld signals_held;
  const bool complete = Completes([&] {
    const Summary summary = Summarize(&Device::Finish);
    if (!summary.devices.empty()) session_->Report(summary);
  });
  if (!complete) Log(LogLevel::kWarn, "an error while ending; no summary");
}

}  // namespace reprise::replay::cuda
