// How a trace's activities become the bytes of its blocks and come back. The layout is drawn in
// trace_format.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profiler/activities.h"

namespace reprise::profiler {

inline constexpr size_t kMostBlockActivities = size_t{1} << 14;

// Encodes the activities of one block after another, each by itself. Not thread-safe.
class ActivityEncoder {
 public:
  void Add(const Activity& activity);
  uint64_t activities() const { return activities_; }  // added since the last Take
  bool full() const { return activities_ == kMostBlockActivities; }
  // The raw bytes of a block with the activities added since the last Take. Valid until the next one.
  std::string_view Take(uint64_t dropped);

 private:
  std::string kinds_, begins_, durations_, tracks_, names_, bytes_, raw_;
  uint64_t activities_ = 0, first_ = 0;
  int64_t end_ns_ = 0;  // of the activity before
};

// What a block says before its columns.
struct ActivitiesHead {
  uint64_t first_activity = 0;  // activities in all blocks before it
  uint64_t dropped = 0;         // activities dropped since the recording began
  uint64_t activities = 0;
};

// The inverse. `raw` is untrusted: InvalidArgument says what is wrong with it, and no length in it is
// believed before it has been checked. Whether the trace has the names is for its reader to say.
absl::StatusOr<ActivitiesHead> DecodeActivities(std::string_view raw, std::vector<Activity>* append_to);

}  // namespace reprise::profiler
