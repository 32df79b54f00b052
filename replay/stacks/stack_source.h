// Where an allocation was asked for: takes the call stack of the thread that asks, before any lock is taken,
// and keeps it for the event that the allocation will be.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "base/exceptions.h"
#include "base/not_cancelled.h"
#include "profiler/shared_stacks.h"
#include "replay/core/config.h"

namespace reprise::replay {

// Takes stacks of one kind.
class StackTaker {
 public:
  virtual ~StackTaker() = default;
  // The calling thread's. 0: none can be had. Takes no lock that is held while other code runs.
  virtual profiler::StackId Take() = 0;
};

// One a process, never destroyed while threads run. A stack is taken only while somebody listens.
class StackSource {
 public:
  // `depth`: raised while a stack is taken, so that what is allocated meanwhile is not the job's (abi.h). May
  // be null.
  StackSource(Stacks kind, int* (*depth)());
  ~StackSource();
  StackSource(const StackSource&) = delete;
  StackSource& operator=(const StackSource&) = delete;

  // Takes the calling thread's stack for its next event. Any thread, any time; errno stays as it was.
  void Take() noexcept;
  // What this thread took last.
  static profiler::StackId taken();

  profiler::SharedStacks& stacks() { return stacks_; }

  void BeginListening() { listeners_.fetch_add(1); }
  void EndListening() { listeners_.fetch_sub(1); }
  // Around every fork, on the thread that forks. Who takes a stack asks the loader about its libraries, and a
  // child would find the loader's lock taken for ever: nobody begins meanwhile, and those at it are waited
  // for.
  void BeforeFork() noexcept;
  void AfterForkInParent() noexcept { forks_.fetch_sub(1); }
  // In a child, straight after fork: takes nothing from now on.
  void AbandonAfterFork() noexcept { abandoned_.store(true, std::memory_order_relaxed); }
  bool wanted() const {
    return listeners_.load(std::memory_order_relaxed) > 0 && !abandoned_.load(std::memory_order_relaxed);
  }

  // Runs `run` unless this thread is at it already, nobody listens, another thread forks, or this is a child
  // that was made without fork's handlers, where the loader's lock may be taken for ever. What it throws
  // is dropped, errno kept; the thread is not cancelled meanwhile, since who unwinds a stack may read files.
  template <typename Run>
  void Guarded(Run run) noexcept {
    if (!wanted() || Inside() != 0 || getpid() != process_ || !CanThrow()) return;
    const Taking taking(*this);
    if (forks_.load() != 0) return;
    const int saved = errno;
    const NotCancelled not_cancelled;
    int* const depth = depth_ == nullptr ? nullptr : depth_();
    if (depth != nullptr) ++*depth;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    try {
      run();
    } catch (...) {  // no memory; the event has no stack, and is counted as such
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (depth != nullptr) --*depth;
    errno = saved;
  }

 private:
  static int& Inside();

  // Counts a thread for as long as it lives. The thread knows it of itself first and last: a signal handler
  // that forks in between must not wait for the thread that it has interrupted.
  class Taking {
   public:
    explicit Taking(StackSource& source) : source_(source) {
      ++Inside();
      source_.taking_.fetch_add(1);
    }
    ~Taking() {
      source_.taking_.fetch_sub(1);
      --Inside();
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    StackSource& source_;
  };

  int* (*const depth_)();
  const pid_t process_ = getpid();
  std::atomic<int> listeners_{0};
  std::atomic<int> taking_{0};  // threads
  std::atomic<int> forks_{0};   // going on now
  std::atomic<bool> abandoned_{false};
  profiler::SharedStacks stacks_;
  std::unique_ptr<StackTaker> taker_;
};

}  // namespace reprise::replay
