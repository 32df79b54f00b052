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

// Seconds since 1970.
inline double WallSeconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// "2026-03-01T12:00:00Z", of seconds since 1970.
inline std::string Utc(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&whole, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// For what is written to say when it was made.
inline std::string UtcNow() { return Utc(WallSeconds()); }

}  // namespace reprise
