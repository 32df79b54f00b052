#include "replay/core/served_engine.h"

#include <bit>
#include <chrono>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "replay/core/log.h"

namespace reprise::replay {
namespace {

constexpr std::chrono::milliseconds kPatienceForLock{200};
// Plans may just be laid and written.
constexpr std::chrono::seconds kPatienceForPlans{5};

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
  if (session.LeavesPlans()) {
    options.learnt = [this, runner](std::vector<Sequence::Known> known) {
      OnLearnt(std::move(known), *runner);
    };
  }
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options, std::move(memory), runner, events);
  if (!engine.ok()) return engine.status();
  engine_ = *std::move(engine);
  plans_ = session.ExpectPlans(*engine_, served_.kind, served_.device);
  trace_ = session.BeginTrace(served_.device, served_.threshold, granule, served_.passed);
  listening_ = trace_ != nullptr;
  if (listening_) engine_->SetEventSink(engine_->Lock(), trace_.get());
  return absl::OkStatus();
}

void ServedEngine::StopListening(const Engine::Guard& guard) {
  engine_->SetEventSink(guard, nullptr);
  listening_ = false;
}

// A job may be killed: what it has learnt is left when it has it, after 1, 2, 4, 8, ... plans, and at its end.
void ServedEngine::OnLearnt(std::vector<Sequence::Known> known, PlanRunner& runner) {
  const int64_t plans = ++learnt_;
  if (known.empty() || !std::has_single_bit(static_cast<uint64_t>(plans))) return;
  runner.Run([this, known = std::move(known), plans] {
    const WriteSignalsHeld signals_held;  // it may be a thread of the job's
    const bool left = Completes([&] {
      const std::lock_guard lock(leaving_);
      LeavePlans(known, plans);
    });
    if (!left) Log(LogLevel::kWarn, "no memory to keep the plans with; they are kept at the end");
  });
}

void ServedEngine::LeavePlans(const std::vector<Sequence::Known>& known, int64_t plans) {
  if (finished_ || plans <= left_ || !session_->InItsProcess()) return;
  if (session_->LeavePlans(known, served_.kind, served_.device, plans_)) left_ = plans;
}

std::optional<Engine::Guard> ServedEngine::Read(const Look& look, EngineSummary& summary) {
  std::optional<Engine::Guard> guard = engine_->TryLockFor(kPatienceForLock);
  summary.complete = guard.has_value();
  if (guard) {
    look(*guard);
    summary.counters = engine_->counters(*guard);
  }
  return guard;
}

void ServedEngine::SoFar(const Look& look, EngineSummary& summary) {
  Read(look, summary);
  if (const std::unique_lock lock(leaving_, std::try_to_lock); lock.owns_lock()) summary.plans = plans_;
  if (trace_ != nullptr) summary.trace = session_->SummaryOf(served_.device, *trace_);
}

void ServedEngine::Finish(bool inside, const Look& look, EngineSummary& summary) {
  std::vector<Sequence::Known> known;  // for the next run, where there is something new
  int64_t learnt = 0;
  summary.complete = false;
  if (const std::optional<Engine::Guard> guard = inside ? std::nullopt : Read(look, summary)) {
    learnt = learnt_;
    if (learnt > 0) known = engine_->KnownPlans(*guard);
    StopListening(*guard);
  }
  if (const std::unique_lock lock(leaving_, kPatienceForPlans); lock.owns_lock()) {
    LeavePlans(known, learnt);
    finished_ = true;
    summary.plans = plans_;
  }
  if (trace_ != nullptr) summary.trace = session_->FinishTrace(served_.device, *trace_);
}

void ServedEngine::AbandonAfterFork() noexcept {
  if (trace_ != nullptr) trace_->AbandonAfterFork();
}

}  // namespace reprise::replay
