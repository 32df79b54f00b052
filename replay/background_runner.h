// Planning beside the job: one thread, there while there is something to plan. One that waited for more would
// keep a process whose own threads have all ended.
//
// In a child of vfork, which has our memory, no thread can be had: it would end with the child's exec, in the middle of
// its job, and never say that it is done.
#pragma once

#include <unistd.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/planning.h"

namespace reprise::replay {

class BackgroundRunner : public PlanRunner {
 public:
  // `on_thread` runs first on each new thread: the core marks it as its own there.
  explicit BackgroundRunner(std::function<void()> on_thread = [] {}) : on_thread_(std::move(on_thread)) {}
  // Waits for the jobs given. In a preloaded process the runner is leaked and this never runs.
  ~BackgroundRunner() override;

  // Called by one thread at a time. Where no thread can be had, nor memory for one, the job runs in the caller. What it
  // throws there leaves the runner as it was; so does std::bad_alloc where there is no memory for the job itself.
  void Run(std::function<void()> job) override;
  // The same, for a job that must not run in the caller: false where no thread can be had, and it does not run.
  bool TryRun(std::function<void()> job);

 private:
  bool Give(std::function<void()> job);
  bool Start();
  void Empty();

  const std::function<void()> on_thread_;
  const pid_t pid_ = getpid();
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
  bool emptying_ = false;  // the thread will look at jobs_ once more
  std::thread thread_;
};

}  // namespace reprise::replay
