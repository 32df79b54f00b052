#include "replay/background_runner.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "base/block_signals.h"
#include "base/not_cancelled.h"
#include "base/own_threads.h"

namespace reprise::replay {

BackgroundRunner::~BackgroundRunner() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundRunner::Run(std::function<void()> job) {
  const NotCancelled not_cancelled;
  if (!Give(std::move(job))) Empty();
}

bool BackgroundRunner::TryRun(std::function<void()> job) {
  const NotCancelled not_cancelled;
  try {
    if (Give(std::move(job))) return true;
  } catch (...) {  // no memory to take it down with
    return false;
  }
  jobs_.clear();
  return false;
}

// To the thread that there is, or to a new one. False: there is none, so jobs_ is nobody else's.
bool BackgroundRunner::Give(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (emptying_) return true;
  }
  return Start();
}

bool BackgroundRunner::Start() {
  if (getpid() != pid_) return false;
  if (thread_.joinable()) thread_.join();  // it is over, or about to be
  const BlockAllSignals blocked;
  try {
    emptying_ = true;
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "reprise-plan");
      LeaveTheStartersCpu();
      on_thread_();
      Empty();
    });
    return true;
  } catch (...) {  // no thread, or no memory for one
    emptying_ = false;
    return false;
  }
}

void BackgroundRunner::Empty() {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    lock.unlock();
    job();
    lock.lock();
  }
  emptying_ = false;
}

}  // namespace reprise::replay
