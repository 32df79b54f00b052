// A thread of ours in somebody's job: it inherits the mask of whoever starts it.
#pragma once

#include <pthread.h>

#include <csignal>

namespace reprise {

// While it lives, the threads that the calling one starts have all signals blocked: the job's handlers never
// run on them, and SIGXFSZ becomes an error of write.
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

}  // namespace reprise
