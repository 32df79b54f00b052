// Signals that wait, while something lives: for a thread of ours in somebody's job, which inherits the mask of whoever
// starts it, and for what is not to be left half done.
#pragma once

#include <pthread.h>

#include <csignal>
#include <initializer_list>

namespace reprise {

// While it lives, the calling thread, and those that it starts, have these signals blocked.
class BlockSignals {
 public:
  BlockSignals(std::initializer_list<int> signals) : BlockSignals(SetOf(signals)) {}
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 protected:
  explicit BlockSignals(const sigset_t& set) { pthread_sigmask(SIG_BLOCK, &set, &before_); }

 private:
  static sigset_t SetOf(std::initializer_list<int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals) sigaddset(&set, signal);
    return set;
  }

  sigset_t before_;
};

// All of them, for starting a thread: the job's handlers never run on it, and SIGXFSZ becomes an error of write.
class BlockAllSignals : public BlockSignals {
 public:
  BlockAllSignals() : BlockSignals(All()) {}

 private:
  static sigset_t All() {
    sigset_t all;
    sigfillset(&all);
    return all;
  }
};

}  // namespace reprise
