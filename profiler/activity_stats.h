// What a trace's activities amount to: where the device's time went, and what it was at when the most was
// live.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/activities.h"

namespace reprise::profiler {

// All activities of one kind and name.
struct ActivityTotal {
  ActivityKind kind = ActivityKind::kKernel;
  FrameId name{};
  int64_t count = 0;
  int64_t ns = 0;
  Bytes bytes;
  friend bool operator==(const ActivityTotal&, const ActivityTotal&) = default;
};

struct ActivityStats {
  std::array<ActivityTotal, kActivityKinds> by_kind{};  // their names are 0
  std::vector<ActivityTotal>
      by_name;               // kernels, copies and sets, the most time first; two streams at once count twice
  std::vector<Activity> at;  // under way at the time asked for, markers too; first begun, first
};

// `time_ns` on the clock of the activities. Linear but for the sorting of what is found.
ActivityStats StatsOf(const std::vector<Activity>& activities, int64_t time_ns);

}  // namespace reprise::profiler
