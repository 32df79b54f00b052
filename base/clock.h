// The clock that nobody sets, as a number that can be compared with another program's.
#pragma once

#include <cstdint>
#include <ctime>

namespace reprise {

// Of CLOCK_MONOTONIC.
inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

}  // namespace reprise
