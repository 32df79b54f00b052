#include "replay/served_engine.h"

#include <chrono>
#include <utility>
#include <vector>

namespace reprise::replay {
namespace {

constexpr std::chrono::milliseconds kPatienceAtExit{200};

}  // namespace

absl::Status ServedEngine::Begin(CoreSession& session, Served served, std::unique_ptr<MemorySource> memory,
                                 PlanRunner* runner, StreamEvents* events) {
  session_ = &session;
  served_ = std::move(served);
  const Bytes granule = memory->granule();
  Engine::Options options;
  options.plan = session.config().mode == Mode::kServe;
  options.capacity = session.config().capacity;
  options.solve = session.EngineSolver();
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options, std::move(memory), runner, events);
  if (!engine.ok()) return engine.status();
  engine_ = *std::move(engine);
  plans_ = session.ExpectPlans(*engine_, served_.kind, served_.device);
  trace_ = session.BeginTrace(served_.device, served_.threshold, granule);
  listening_ = trace_ != nullptr;
  if (listening_) engine_->SetEventSink(engine_->Lock(), trace_.get());
  return absl::OkStatus();
}

void ServedEngine::StopListening(const Engine::Guard& guard) {
  engine_->SetEventSink(guard, nullptr);
  listening_ = false;
}

void ServedEngine::Finish(bool inside, Bytes passed, const std::function<void(const Engine::Guard&)>& last,
                          EngineSummary& summary) {
  std::vector<Sequence::Known> known;  // for the next run, where there is something new
  {
    std::optional<Engine::Guard> guard;
    if (!inside) guard = engine_->TryLockFor(kPatienceAtExit);
    summary.complete = guard.has_value();
    if (guard) {
      last(*guard);
      summary.counters = engine_->counters(*guard);
      if (summary.counters.plans > summary.counters.plans_resumed) known = engine_->KnownPlans(*guard);
      StopListening(*guard);
    }
  }
  session_->LeavePlans(known, served_.kind, served_.device, plans_);
  summary.plans = plans_;
  if (trace_ != nullptr) summary.trace = session_->FinishTrace(served_.device, *trace_, passed);
}

void ServedEngine::AbandonAfterFork() noexcept {
  if (trace_ != nullptr) trace_->AbandonAfterFork();
}

}  // namespace reprise::replay
