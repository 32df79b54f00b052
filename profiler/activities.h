// What a job's device did while the job allocated, as a profiler of the device tells it (CUPTI).
//
// Glossary
//   activity   one piece of work, from begin to end: a kernel, a copy, a set, or a range that the job itself
//   marked track      what runs one thing after another: the stream of work, the thread of a range
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "profiler/stacks.h"

namespace reprise::profiler {

enum class ActivityKind : uint8_t { kKernel = 0, kCopy = 1, kSet = 2, kMarker = 3 };
inline constexpr size_t kActivityKinds = 4;
// Of begin and duration, so that an end is a number too; beyond them is no time that a clock has shown.
inline constexpr int64_t kMostActivityNs = (int64_t{1} << 62) - 1;

struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  uint32_t track = 0;    // the device's own number of the stream, the system's of the thread
  FrameId name{};        // a frame of kind kDevice; 0: not known
  Bytes bytes{};         // copy, set: moved or written
  int64_t begin_ns = 0;  // on the clock of the events: since the trace began, and before it where negative
  int64_t duration_ns = 0;
  friend bool operator==(const Activity&, const Activity&) = default;
};

}  // namespace reprise::profiler
