#include "cli/input_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "profiler/lifetimes.h"
#include "profiler/site_labels.h"

namespace reprise::cli {

Timeline TimelineOf(const std::vector<profiler::Lifetime>& lifetimes, bool with_gaps) {
  struct Change {
    Tick tick;
    bool alloc;
    size_t index;
  };
  std::vector<Change> changes;
  changes.reserve(2 * lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    changes.push_back({lifetimes[i].lower, true, i});
    if (with_gaps) {
      for (const profiler::Lifetime::Gap& gap : lifetimes[i].gaps) {
        changes.push_back({gap.lower, false, i});
        changes.push_back({gap.upper, true, i});
      }
    }
    changes.push_back({lifetimes[i].upper, false, i});
  }
  // Half-open: at one tick the frees come first.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.alloc < b.alloc;
  });
  Timeline timeline;
  timeline.events.reserve(changes.size());
  timeline.ticks.reserve(changes.size());
  for (const Change& change : changes) {
    profiler::Event event;
    event.kind = change.alloc ? profiler::EventKind::kAlloc : profiler::EventKind::kFree;
    event.id = BlockId{change.index};
    event.stream = Stream(static_cast<uint64_t>(lifetimes[change.index].lane));
    const profiler::Lifetime& lifetime = lifetimes[change.index];
    if (change.alloc) {
      event.bytes = lifetime.size;
      if (lifetime.alignment > Bytes(1)) event.alignment = lifetime.alignment;
    }
    timeline.events.push_back(event);
    timeline.ticks.push_back(change.tick);
  }
  return timeline;
}

static double AttributedShare(const InputStats& result) {
  Bytes all, attributed;
  for (const profiler::SiteBytes& c : result.sites_at_peak) {
    all += c.bytes;
    if (profiler::SaysWhere(result.sites.sites[c.site])) attributed += c.bytes;
  }
  return all > Bytes(0) ? static_cast<double>(attributed.count()) / static_cast<double>(all.count()) : 0;
}

absl::StatusOr<InputStats> StatsOfInput(const LoadedInput& input, profiler::FoundIteration* found) {
  InputStats result;
  if (input.is_lifetimes()) {
    // A buffer counts once, whatever gaps it has; only the peak knows of them.
    const Timeline of_whole = TimelineOf(input.content.lifetimes, /*with_gaps=*/false);
    result.stats = profiler::StatsOf(of_whole.events);
    if (result.stats.allocs > 0) {
      const Timeline timeline = TimelineOf(input.content.lifetimes);
      const profiler::LivePeak peak = profiler::LivePeakOf(timeline.events);
      result.stats.live_peak = peak.bytes;
      result.stats.at_peak = profiler::SizesLiveAt(timeline.events, peak.at);
      result.stats.peak_at = timeline.ticks[static_cast<size_t>(peak.at)].count();
      result.streams = profiler::ByStream(timeline.events, peak.at);
      // The same streams in the same order: none begins with what follows a gap.
      const std::vector<profiler::StreamUse> counted = profiler::ByStream(of_whole.events, 0);
      for (size_t i = 0; i < counted.size(); ++i) {
        result.streams[i].allocs = counted[i].allocs;
        result.streams[i].allocated = counted[i].allocated;
      }
    }
    // The file is one iteration; what repeats inside is none.
    result.stats.iterations = 0;
    result.stats.iteration.reset();
    result.stats.leak.reset();
    result.stats.peaks.reset();
    result.stats.lifetimes.clear();
    for (const profiler::Lifetime& l : input.content.lifetimes) {
      profiler::CountLifetime(l.upper - l.lower, l.size, result.stats.lifetimes);
    }
    result.lifetime_unit = "ticks";
  } else {
    const profiler::Trace& trace = input.content.trace;
    result.stats = profiler::StatsOf(trace.events, found);
    if (result.stats.lifetimes_in_us) result.lifetime_unit = "us";
    result.streams = profiler::ByStream(trace.events, result.stats.peak_at);
    if (trace.stacks.stacks() > 0) {
      const std::vector<profiler::StackBytes> at_peak =
          profiler::StacksLiveAt(trace.events, result.stats.peak_at);
      result.sites = profiler::SitesOf(trace.stacks);
      profiler::TellApart(std::array{&result.sites});
      result.sites_at_peak = profiler::BySite(result.sites, at_peak);
      result.libraries = profiler::ByLibrary(trace.stacks, at_peak);
      result.attributed = AttributedShare(result);
    }
    if (!trace.activities.empty()) {
      const auto peak_at = static_cast<size_t>(result.stats.peak_at);
      const int64_t time_ns = peak_at < trace.events.size() ? trace.events[peak_at].time_ns : 0;
      result.device = profiler::StatsOf(trace.activities, time_ns);
      if (result.stats.allocs == 0) result.device->at.clear();  // there is no peak that it would be at
    }
  }
  if (result.stats.allocs == 0) return result;
  const absl::StatusOr<Bytes> bound = LowerBoundOf(input);
  if (!bound.ok()) return bound.status();
  result.lower_bound = *bound;
  return result;
}

absl::StatusOr<MeasuredInput> Measured(absl::StatusOr<LoadedInput> input) {
  if (!input.ok()) return input.status();
  absl::StatusOr<InputStats> stats = StatsOfInput(*input);
  if (!stats.ok()) return stats.status();
  return MeasuredInput{*std::move(stats), *std::move(input)};
}

std::string_view NameOf(profiler::InputFormat format) {
  switch (format) {
    case profiler::InputFormat::kTrace:
      return "trace";
    case profiler::InputFormat::kEventCsv:
      return "event CSV";
    case profiler::InputFormat::kLifetimeCsv:
      return "lifetime CSV";
    case profiler::InputFormat::kKineto:
      return "profiler trace";
    case profiler::InputFormat::kSnapshot:
      break;
  }
  return "snapshot";
}

std::optional<int64_t> DeviceOf(const LoadedInput& input) {
  const profiler::Input& content = input.content;
  switch (content.format) {
    case profiler::InputFormat::kTrace:
      return content.trace.metadata.device;
    case profiler::InputFormat::kSnapshot:
      if (content.snapshot.converted) return std::nullopt;
      return content.snapshot.device;
    case profiler::InputFormat::kKineto:
      return content.kineto.device;
    case profiler::InputFormat::kEventCsv:
    case profiler::InputFormat::kLifetimeCsv:
      break;
  }
  return std::nullopt;
}

std::string_view NameOf(profiler::ActivityKind kind) {
  switch (kind) {
    case profiler::ActivityKind::kKernel:
      return "kernel";
    case profiler::ActivityKind::kCopy:
      return "copy";
    case profiler::ActivityKind::kSet:
      return "set";
    case profiler::ActivityKind::kMarker:
      break;
  }
  return "marker";
}

std::string_view NameOf(const profiler::StackTable& stacks, profiler::FrameId activity) {
  return activity == profiler::FrameId(0) ? "unnamed" : std::string_view(stacks.frame(activity).function);
}

}  // namespace reprise::cli
