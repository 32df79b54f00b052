// What the calling process has taken so far: for benchmarks, and tests of what the core's own tables take.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>

#include "base/units.h"

namespace reprise {

// The calling thread's time of the processor.
inline double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline Bytes ResidentBytes() {
  int64_t size = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return Bytes(resident * sysconf(_SC_PAGESIZE));
}

}  // namespace reprise
