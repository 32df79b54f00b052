#include "replay/cuda/device.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace reprise::replay::cuda {

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Driver& driver, CoreSession& session, int ordinal,
                                                     const std::atomic<int>& captures) {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory =
      DeviceMemory::Create(driver, ordinal, session.config().oversubscribe);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<Device> device(new Device(driver, ordinal, captures));
  device->name_ = driver.NameOf(ordinal);
  device->memory_ = memory->get();
  const auto passed = [device = device.get()] { return Bytes(device->passed); };
  absl::Status begun =
      device->engine_.Begin(session, {.kind = device->name_, .device = ordinal, .passed = passed},
                            *std::move(memory), &device->runner_, &device->streams_);
  if (!begun.ok()) return begun;
  return device;
}

std::optional<Stream> Device::SynchronousStream(const Engine::Guard&, cu_context context) {
  if (streams_.Suspended(context)) return std::nullopt;
  auto known = std::find(contexts_.begin(), contexts_.end(), context);
  if (known == contexts_.end() && streams_.MayBeInGreenContext()) return std::nullopt;
  if (known == contexts_.end()) known = std::find(contexts_.begin(), contexts_.end(), nullptr);
  if (known == contexts_.end()) known = contexts_.emplace(contexts_.end());
  *known = context;
  return Stream{static_cast<uint64_t>(kEveryStream) + static_cast<uint64_t>(known - contexts_.begin())};
}

std::vector<Stream> Device::DropContext(const Engine::Guard& guard, cu_context context, StreamTable& table) {
  std::vector<Stream> ordered;
  std::vector<Stream> synchronous;
  {
    const absl::Cleanup forgotten = [&] {  // whatever fails
      streams_.DropContext(context);
      memory_->OnContextGone(context);
      std::ranges::replace(contexts_, context, nullptr);
    };
    ordered = streams_.OfContext(context);
    table.TakeAll(*this, ordered);
    for (size_t i = 0; i < contexts_.size(); ++i) {
      if (contexts_[i] == context) synchronous.push_back(Stream{static_cast<uint64_t>(kEveryStream) + i});
    }
  }
  for (const Stream stream : ordered) engine_->order(guard)->Abandon(stream);
  std::vector<Stream> gone = std::move(synchronous);
  std::vector<Stream> outlived;
  if (memory_->lost()) {
    gone.insert(gone.end(), ordered.begin(), ordered.end());
  } else {
    outlived = std::move(ordered);
  }
  std::vector<Offset> blocks;
  engine_->ForEachLive(guard, [&](Offset offset, const BlockInfo& info) {
    if (std::ranges::find(gone, info.stream) != gone.end()) blocks.push_back(offset);
    if (std::ranges::find(outlived, info.stream) != outlived.end()) streams_.Hold(info.stream);
  });
  for (const Offset block : blocks) CountOut(guard, *engine_->FreeBlock(guard, block, kEveryStream));
  return gone;
}

DeviceSummary Device::Summarize(
    const std::function<void(const ServedEngine::Look&, EngineSummary&)>& tell) const {
  DeviceSummary summary;
  summary.ordinal = ordinal_;
  summary.name = name_;
  const auto look_at_memory = [&](const Engine::Guard&) {
    summary.refusal = memory_->refusal();
    const DeviceMemory::Oversubscription& held = memory_->oversubscription();
    summary.granules_in_host = held.in_host;
    summary.in_host_peak = memory_->granule() * held.in_host_peak;
    summary.granules_in_host_peak = held.in_host_peak;
    summary.on_device_full = memory_->granule() * held.on_device_full;
  };
  tell(look_at_memory, summary);
  summary.capture_passes = capture_passes;
  summary.unrecorded = unrecorded;
  summary.memory_waits = memory_waits;
  summary.refused_exports = refused_exports;
  summary.segments_only = segments > 0 && others == 0;
  return summary;
}

}  // namespace reprise::replay::cuda
