// A thread of the job's that is not cancelled, while something lives: for what waits or uses files on the way of a call of
// ours. What they stand for is no place where a thread is cancelled, and nothing may leave them as a cancellation would.
#pragma once

#include <pthread.h>

namespace reprise {

class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = 0;
};

}  // namespace reprise
