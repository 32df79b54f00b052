#include "replay/cuda/device.h"

#include <algorithm>
#include <utility>

#include "replay/core_log.h"

namespace reprise::replay::cuda {
namespace {

constexpr std::chrono::milliseconds kPatienceAtExit{200};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Driver& driver, CoreSession& session, int ordinal,
                                                     const std::atomic<int>& captures) {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory =
      DeviceMemory::Create(driver, ordinal, session.config().oversubscribe);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<Device> device(new Device(driver, ordinal, captures));
  device->name_ = driver.NameOf(ordinal);
  device->memory_ = memory->get();
  Engine::Options options;
  options.plan = session.config().mode == Mode::kServe;
  options.capacity = session.config().capacity;
  options.solve = session.EngineSolver();
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(options, *std::move(memory), &device->runner_, &device->streams_);
  if (!engine.ok()) return engine.status();
  device->engine_ = *std::move(engine);
  device->plans_ = session.ExpectPlans(*device->engine_, device->name_, ordinal);
  device->trace_ = session.BeginTrace(ordinal, Bytes(1), kGranule);
  device->listening_ = device->trace_ != nullptr;
  if (device->listening_) device->engine_->SetEventSink(device->engine_->Lock(), device->trace_.get());
  return device;
}

void Device::StopListeningWhenDone(const Engine::Guard& guard) {
  if (!trace_->done()) return;
  engine_->SetEventSink(guard, nullptr);
  listening_ = false;
}

Stream Device::SynchronousStream(const Engine::Guard&, cu_context context) {
  auto known = std::find(contexts_.begin(), contexts_.end(), context);
  if (known == contexts_.end()) known = std::find(contexts_.begin(), contexts_.end(), nullptr);
  if (known == contexts_.end()) known = contexts_.emplace(contexts_.end());
  *known = context;
  return Stream{static_cast<uint64_t>(kEveryStream) + static_cast<uint64_t>(known - contexts_.begin())};
}

std::vector<Stream> Device::DropContext(const Engine::Guard& guard, cu_context context, bool reset,
                                        StreamTable& table) {
  std::vector<Stream> gone = streams_.OfContext(context);
  table.TakeAll(*this, gone);
  streams_.DropContext(context);
  for (const Stream stream : gone) engine_->order(guard)->Abandon(stream);
  memory_->OnContextGone(context);
  std::vector<Stream> outlived;
  if (!reset && !memory_->lost()) std::swap(gone, outlived);
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (contexts_[i] != context) continue;
    gone.push_back(Stream{static_cast<uint64_t>(kEveryStream) + i});
    contexts_[i] = nullptr;
  }
  std::vector<Offset> blocks;
  engine_->ForEachLive(guard, [&](Offset offset, const BlockInfo& info) {
    if (std::ranges::find(gone, info.stream) != gone.end()) blocks.push_back(offset);
    if (std::ranges::find(outlived, info.stream) != outlived.end()) streams_.Hold(info.stream);
  });
  for (const Offset block : blocks) CountOut(guard, *engine_->FreeBlock(guard, block, kEveryStream));
  return gone;
}

DeviceSummary Device::Finish(const CoreSession& session) {
  DeviceSummary summary;
  summary.ordinal = ordinal_;
  summary.name = name_;
  std::vector<Sequence::Known> known;  // for the next run, where there is something new
  {
    const std::optional<Engine::Guard> guard = engine_->TryLockFor(kPatienceAtExit);
    summary.complete = guard.has_value();
    if (guard) {
      summary.counters = engine_->counters(*guard);
      if (summary.counters.plans > summary.counters.plans_resumed) known = engine_->KnownPlans(*guard);
      summary.refusal = memory_->refusal();
      const DeviceMemory::Oversubscription& held = memory_->oversubscription();
      summary.granules_in_host = held.in_host;
      summary.in_host_peak = memory_->granule() * held.in_host_peak;
      summary.granules_in_host_peak = held.in_host_peak;
      summary.on_device_full = memory_->granule() * held.on_device_full;
      engine_->SetEventSink(*guard, nullptr);
      listening_ = false;
    }
  }
  session.LeavePlans(known, name_, ordinal_, plans_);
  summary.plans = plans_;
  summary.capture_passes = capture_passes;
  summary.memory_waits = memory_waits;
  summary.refused_exports = refused_exports;
  summary.segments_only = segments > 0 && others == 0;
  if (trace_ != nullptr) summary.trace = session.FinishTrace(ordinal_, *trace_);
  return summary;
}

void Device::AbandonAfterFork() noexcept {
  if (trace_ != nullptr) trace_->AbandonAfterFork();
}

}  // namespace reprise::replay::cuda
