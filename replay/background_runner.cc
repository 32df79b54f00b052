#include "replay/background_runner.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "base/block_signals.h"

namespace reprise::replay {

BackgroundRunner::~BackgroundRunner() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackgroundRunner::Run(std::function<void()> job) {
  if (!Start()) {
    job();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

bool BackgroundRunner::Start() {
  if (thread_.joinable()) return true;
  const BlockAllSignals blocked;
  try {
    thread_ = std::thread([this] { Loop(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void BackgroundRunner::Loop() {
  pthread_setname_np(pthread_self(), "reprise-plan");
  on_thread_();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace reprise::replay
