#include "replay/background_runner.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace reprise::replay {
namespace {

// The job's signals are for the job's threads.
class BlockAllSignals {
 public:
  BlockAllSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockAllSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockAllSignals(const BlockAllSignals&) = delete;
  BlockAllSignals& operator=(const BlockAllSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

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
  const BlockAllSignals blocked;  // the new thread inherits the mask
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
