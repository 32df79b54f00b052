// An engine in a process that it serves: the plans that an earlier run has left it, the trace that hears of its
// events, and what is told and left when the process ends. The seams for the host and for CUDA have one for
// each memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "replay/core/session.h"
#include "replay/core/summary.h"
#include "replay/core/trace.h"
#include "replay/engine.h"

namespace reprise::replay {

class ServedEngine {
 public:
  // What is served: `kind` is "host", or the device as CUDA calls it. Smaller requests than `threshold` never
  // come.
  struct Served {
    std::string kind;
    int device = 0;
    Bytes threshold{1};
    std::function<Bytes()> passed;  // bytes in requests that no event is of, so far; any thread
  };

  // Once, before anything else. `session`, `runner` and `events` (null where there are no streams) outlive it.
  // Errors: those of Engine::Create.
  absl::Status Begin(CoreSession& session, Served served, std::unique_ptr<MemorySource> memory,
                     PlanRunner* runner, StreamEvents* events = nullptr);

  Engine* operator->() const { return engine_.get(); }
  Engine& operator*() const { return *engine_; }
  CoreTrace* trace() const { return trace_.get(); }  // null: there is none

  // Called with the lock, at every request: a trace that has ended costs nothing any more, and the session is
  // called now and then, but at each of the first requests: there may be few.
  void Tend(const Engine::Guard& guard) {
    if (listening_ && trace_->done()) StopListening(guard);
    if (++tended_ < kTendedAtOnce || tended_ % kTendedAtOnce == 0) session_->Tend();
  }

  using Look = std::function<void(const Engine::Guard&)>;
  // Tells `summary` how it goes. Not for a thread that may have the lock, which is waited for, but not for ever:
  // without it the summary is incomplete. `look` is called with the lock, before the counters are read.
  void SoFar(const Look& look, EngineSummary& summary);
  // Tells `summary` how it went, leaves what has been learnt for the next run and ends the trace; nothing is
  // recorded after it. Where the caller may be `inside` the engine, its lock is not waited for: then the summary is
  // incomplete.
  void Finish(bool inside, const Look& look, EngineSummary& summary);
  void AbandonAfterFork() noexcept;

 private:
  static constexpr uint32_t kTendedAtOnce = 256;

  std::optional<Engine::Guard> Read(const Look& look, EngineSummary& summary);
  void StopListening(const Engine::Guard& guard);
  void OnLearnt(std::vector<Sequence::Known> known, PlanRunner& runner);
  void LeavePlans(const std::vector<Sequence::Known>& known, int64_t plans);

  CoreSession* session_ = nullptr;
  Served served_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CoreTrace> trace_;
  bool listening_ = false;  // the trace hears of the engine's events; under the lock
  uint32_t tended_ = 0;     // requests; under the lock
  int64_t learnt_ = 0;      // plans adopted; under the lock

  std::timed_mutex leaving_;
  PlansSummary plans_;
  int64_t left_ = 0;       // how many plans had been adopted when plans were left
  bool finished_ = false;  // nothing is left any more
};

}  // namespace reprise::replay
