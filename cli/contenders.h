// The allocators that an input's events are tried on, for `compare` and `report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/snapshot_import.h"
#include "profiler/types.h"
#include "replay/models/models.h"
#include "replay/track.h"

namespace reprise::cli {

// One allocator's line.
struct Contender {
  std::string name;
  std::string meaning;
  Bytes most_added;  // to one request by rounding; 0 where that is not known
  Bytes reserved_peak;
  std::optional<Bytes> allocated_peak;
  std::optional<int64_t> driver_allocations;
  std::optional<bool> fits;
  std::optional<int64_t> failed_at;  // the event at which memory was out
  bool failed = false;               // even without a limit: none of its figures is that of all events
  bool stopped = false;              // told to; its figures are not all
  int64_t overlaps = 0;
};

// Why a contender has failed.
inline constexpr std::string_view kNoRoom = "found no room even without a limit";

// `watch` follows the run without a limit, and may stop both. With a capacity that run is a second one.
Contender Modelled(const replay::ModelInfo& model, const std::vector<profiler::Event>& events,
                   std::optional<Bytes> capacity, const replay::Watch& watch = {});
absl::StatusOr<Contender> Ours(const std::vector<profiler::Event>& events, std::optional<Bytes> capacity,
                               const replay::Watch& watch = {});
// All of them, the models first.
absl::StatusOr<std::vector<Contender>> AllContenders(const std::vector<profiler::Event>& events,
                                                     std::optional<Bytes> capacity);
// What the allocator of the job held itself. NotFound: the snapshot has segments of a time after the peak alone.
absl::StatusOr<Contender> Recorded(const profiler::Snapshot& snapshot, Bytes live_peak);

// As `compare --json` prints them: an object on several lines.
std::string ContendersJson(const std::string& input, std::optional<Bytes> capacity, Bytes live_peak,
                           const std::vector<Contender>& contenders);

}  // namespace reprise::cli
