// Planning beside the job: one thread, started with the first plan.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/planning.h"

namespace reprise::replay {

class BackgroundRunner : public PlanRunner {
 public:
  // `on_thread` runs first on the new thread: the core marks it as its own there.
  explicit BackgroundRunner(std::function<void()> on_thread = [] {}) : on_thread_(std::move(on_thread)) {}
  // Waits for the jobs given. In a preloaded process the runner is leaked and this never runs.
  ~BackgroundRunner() override;

  // Called by one thread at a time. Where no thread can be had the job runs in the caller.
  void Run(std::function<void()> job) override;

 private:
  bool Start();
  void Loop();

  const std::function<void()> on_thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace reprise::replay
