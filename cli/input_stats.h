// What an input amounts to, gathered for `stats`, `report` and `diff`: they show the same figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/input.h"
#include "profiler/activity_stats.h"
#include "profiler/breakdown.h"
#include "profiler/site_stats.h"
#include "profiler/stats.h"

namespace reprise::cli {

struct InputStats {
  profiler::Stats stats;
  Bytes lower_bound;
  std::string lifetime_unit = "events";              // or "us", or "ticks" of a lifetime CSV
  profiler::SiteTable sites{};                       // empty where the input has no stacks
  std::vector<profiler::SiteBytes> sites_at_peak{};  // the same
  std::vector<profiler::StreamUse> streams{};        // of a lifetime CSV its lanes
  std::vector<profiler::LibraryUse> libraries{};  // at the peak; empty where the input has no native stacks
  double attributed = 0;                          // share of the bytes at the peak whose site says where
  // What the device did, and was at when the peak was asked for; none where the input has no activities.
  std::optional<profiler::ActivityStats> device{};
};

// Lifetimes as the events that they stand for.
struct Timeline {
  std::vector<profiler::Event> events;
  std::vector<Tick> ticks;  // of each event, as the file counts them
};
// `with_gaps`: or each lifetime in one piece.
Timeline TimelineOf(const std::vector<profiler::Lifetime>& lifetimes, bool with_gaps = true);

// `found` gets the iteration where there is one; it may be null. Errors: a lifetime CSV that is no problem.
absl::StatusOr<InputStats> StatsOfInput(const LoadedInput& input, profiler::FoundIteration* found = nullptr);

struct MeasuredInput : InputStats {
  LoadedInput input;
};

// An input together with its figures, or why it was not loaded, or has none.
absl::StatusOr<MeasuredInput> Measured(absl::StatusOr<LoadedInput> input);

std::string_view NameOf(profiler::InputFormat format);
std::string_view NameOf(profiler::ActivityKind kind);
// As the device's profiler has it; "unnamed" where it does not say.
std::string_view NameOf(const profiler::StackTable& stacks, profiler::FrameId activity);

// Whose memory it is, as the driver numbers devices, or as a profiler's trace does; nullopt: the input does not say.
std::optional<int64_t> DeviceOf(const LoadedInput& input);

}  // namespace reprise::cli
