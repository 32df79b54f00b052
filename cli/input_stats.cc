#include "cli/input_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "planner/bound.h"
#include "planner/problem.h"
#include "profiler/lifetimes.h"

namespace reprise::cli {

using Json = nlohmann::ordered_json;

Timeline TimelineOf(const std::vector<profiler::Lifetime>& lifetimes) {
  struct Change {
    Tick tick;
    bool alloc;
    size_t index;
  };
  std::vector<Change> changes;
  changes.reserve(2 * lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    changes.push_back({lifetimes[i].lower, true, i});
    for (const profiler::Lifetime::Gap& gap : lifetimes[i].gaps) {
      changes.push_back({gap.lower, false, i});
      changes.push_back({gap.upper, true, i});
    }
    changes.push_back({lifetimes[i].upper, false, i});
  }
  // Half-open: at one tick the frees come first.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.alloc < b.alloc;
  });
  Timeline timeline;
  for (const Change& change : changes) {
    profiler::Event event;
    event.kind = change.alloc ? profiler::EventKind::kAlloc : profiler::EventKind::kFree;
    event.id = BlockId{change.index};
    if (change.alloc) event.bytes = lifetimes[change.index].size;
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
    std::vector<profiler::Lifetime> whole = input.content.lifetimes;
    for (profiler::Lifetime& l : whole) l.gaps.clear();
    result.stats = profiler::StatsOf(TimelineOf(whole).events);
    if (result.stats.allocs > 0) {
      const Timeline timeline = TimelineOf(input.content.lifetimes);
      const profiler::LifetimeTable table = profiler::LifetimesOf(timeline.events);
      result.stats.live_peak = table.live_peak;
      result.stats.at_peak = profiler::SizesLiveAt(timeline.events, table.peak_at.count());
      result.stats.peak_at = timeline.ticks[static_cast<size_t>(table.peak_at.count())].count();
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
      result.sites_at_peak = profiler::BySite(result.sites, at_peak);
      result.libraries = profiler::ByLibrary(trace.stacks, at_peak);
      result.attributed = AttributedShare(result);
    }
    if (!trace.activities.empty()) {
      const auto peak_at = static_cast<size_t>(result.stats.peak_at);
      const int64_t time_ns = peak_at < trace.events.size() ? trace.events[peak_at].time_ns : 0;
      result.device = profiler::StatsOf(trace.activities, time_ns);
    }
  }
  if (result.stats.allocs == 0) return result;
  const absl::StatusOr<planner::Problem> problem = ProblemOf(input);
  if (!problem.ok()) return problem.status();
  if (const absl::Status valid = planner::Validate(*problem); !valid.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", input.name, MessageOf(valid)));
  }
  result.lower_bound = planner::LowerBound(*problem);
  return result;
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

int64_t DeviceOf(const LoadedInput& input) {
  return input.content.format == profiler::InputFormat::kSnapshot ? input.content.snapshot.device
                                                                  : input.content.trace.metadata.device;
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

static Json DeviceJson(const profiler::StackTable& stacks, const profiler::ActivityStats& device) {
  Json json = {{"totals", Json::array()}, {"by_name", Json::array()}, {"at_peak", Json::array()}};
  for (const profiler::ActivityTotal& total : device.by_kind) {
    json["totals"].push_back({{"kind", NameOf(total.kind)},
                              {"count", total.count},
                              {"ns", total.ns},
                              {"bytes", total.bytes.count()}});
  }
  for (const profiler::ActivityTotal& total : device.by_name) {
    json["by_name"].push_back({{"kind", NameOf(total.kind)},
                               {"name", NameOf(stacks, total.name)},
                               {"count", total.count},
                               {"ns", total.ns},
                               {"bytes", total.bytes.count()}});
  }
  for (const profiler::Activity& activity : device.at) {
    json["at_peak"].push_back({{"kind", NameOf(activity.kind)},
                               {"name", NameOf(stacks, activity.name)},
                               {"track", activity.track},
                               {"begin_ns", activity.begin_ns},
                               {"duration_ns", activity.duration_ns}});
  }
  return json;
}

std::string StatsJson(const LoadedInput& input, const InputStats& result) {
  const profiler::Stats& stats = result.stats;
  Json json = {{"input", input.name},
               {"format", NameOf(input.content.format)},
               {"rank", input.content.trace.metadata.rank},
               {"world_size", input.content.trace.metadata.world_size},
               {"device", DeviceOf(input)},
               {"events", stats.events},
               {"allocs", stats.allocs},
               {"frees", stats.frees},
               {"marks", stats.marks},
               {"allocated", stats.allocated.count()},
               {"live_peak", stats.live_peak.count()},
               {"peak_at", stats.peak_at},
               {"lower_bound", result.lower_bound.count()},
               {"live_at_end", stats.live_at_end.count()},
               {"dropped", input.content.trace.dropped},
               {"iterations", stats.iterations},
               {"iteration", nullptr},
               {"histogram", Json::array()},
               {"at_peak", Json::array()},
               {"leak", nullptr},
               {"iteration_peaks", nullptr},
               {"lifetimes", {{"unit", result.lifetime_unit}, {"classes", Json::array()}}},
               {"attributed", result.attributed},
               {"frames_without_symbols", input.symbols.unnamed},
               {"streams", Json::array()},
               {"libraries", Json::array()},
               {"sites", Json::array()}};
  if (const auto& iteration = stats.iteration) {
    json["iteration"] = {{"tokens", iteration->tokens},
                         {"found_at", iteration->first},
                         {"persistent", iteration->persistent.count()},
                         {"peak", iteration->peak.count()},
                         {"allocated", iteration->allocated.count()}};
  }
  for (const profiler::SizeClass& c : stats.histogram) {
    json["histogram"].push_back({{"from", c.from.count()}, {"blocks", c.blocks}, {"bytes", c.bytes.count()}});
  }
  for (const profiler::SizeCount& c : stats.at_peak) {
    json["at_peak"].push_back({{"size", c.size.count()}, {"blocks", c.blocks}});
  }
  if (stats.leak) {
    json["leak"] = {{"bytes_per_iteration", stats.leak->bytes_per_iteration}, {"cuts", stats.leak->cuts}};
  }
  if (stats.peaks) {
    json["iteration_peaks"] = {{"least", stats.peaks->least.count()},
                               {"most", stats.peaks->most.count()},
                               {"iterations", stats.peaks->rounds}};
  }
  for (const profiler::StreamUse& use : result.streams) {
    json["streams"].push_back({{"stream", fmt::format("{:#x}", static_cast<uint64_t>(use.stream))},
                               {"allocs", use.allocs},
                               {"allocated", use.allocated.count()},
                               {"live_peak", use.live_peak.count()},
                               {"blocks_at_peak", use.blocks_at_peak},
                               {"bytes_at_peak", use.at_peak.count()}});
  }
  for (const profiler::LibraryUse& use : result.libraries) {
    json["libraries"].push_back(
        {{"library", use.library}, {"blocks", use.blocks}, {"bytes", use.bytes.count()}});
  }
  for (const profiler::LifetimeClass& c : stats.lifetimes) {
    json["lifetimes"]["classes"].push_back(
        {{"from", c.from}, {"blocks", c.blocks}, {"bytes", c.bytes.count()}});
  }
  for (const profiler::SiteBytes& c : result.sites_at_peak) {
    const profiler::Site& site = result.sites.sites[c.site];
    json["sites"].push_back({{"label", site.label},
                             {"file", site.file},
                             {"line", site.line},
                             {"function", site.function},
                             {"library", site.library},
                             {"blocks", c.blocks},
                             {"bytes", c.bytes.count()}});
  }
  if (result.device) json["device_activity"] = DeviceJson(input.content.trace.stacks, *result.device);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::cli
