// The clock that nobody sets, as a number that another program can compare, and the one on the wall.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace reprise {

// Of CLOCK_MONOTONIC.
inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

// "2026-03-01T12:00:00Z", for what is written to say when it was made.
inline std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace reprise
