// Everything the page shows, gathered from one input within a limit of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/contenders.h"
#include "cli/input_stats.h"
#include "cli/report/blocks.h"
#include "cli/report/layouts.h"
#include "replay/offline_plan.h"

namespace reprise::cli {

// What an allocator held over time.
struct ReservedSeries {
  std::string name;
  std::vector<double> most;  // by point of the time line
};

// An allocator with every stream's requests on one stream.
struct Merged {
  std::string name;
  Bytes apart;
  Bytes together;
};

struct WithoutSite {
  uint32_t site = 0;
  Bytes peak;
};

struct Findings {
  InputStats stats;
  size_t events = 0;  // how many; of a lifetime CSV: its changes
  BlockTable blocks;
  TimelinePoints points;
  std::vector<Contender> contenders;
  std::vector<ReservedSeries> reserved;
  std::vector<Layout> layouts;
  std::optional<replay::OfflinePlan> plan;  // of an iteration
  std::optional<Bytes> whole_slab;          // of a plan of the whole input, where that was made
  std::vector<profiler::StackBytes> peak_stacks;
  std::vector<WithoutSite> without_site;
  std::vector<Merged> merged;
  std::vector<std::string> left_out;  // for people: what was not done, and why
};

struct GatherLimits {
  double seconds = 30;  // for planning and models together
  size_t blocks = 150'000;
  size_t points = 32'768;
};

// Errors: an input without one allocation, or one that breaks its format's rules. What does not end in time,
// or cannot be done, is left out and named.
absl::StatusOr<Findings> Gather(const LoadedInput& input, std::optional<Bytes> capacity,
                                const GatherLimits& limits);

}  // namespace reprise::cli
