#include "cli/stats_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "cli/json_text.h"
#include "cli/or_null.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename Range, typename F>
Json ArrayOf(const Range& range, F&& as_json) {
  Json array = Json::array();
  for (const auto& each : range) array.push_back(as_json(each));
  return array;
}

Json IterationJson(const profiler::IterationStats& iteration) {
  return {{"tokens", iteration.tokens},
          {"found_at", iteration.first},
          {"persistent", iteration.persistent.count()},
          {"peak", iteration.peak.count()},
          {"allocated", iteration.allocated.count()}};
}

Json SizeClassJson(const profiler::SizeClass& c) {
  return {{"from", c.from.count()}, {"blocks", c.blocks}, {"bytes", c.bytes.count()}};
}

Json SizeCountJson(const profiler::SizeCount& c) { return {{"size", c.size.count()}, {"blocks", c.blocks}}; }

Json LeakJson(const profiler::Leak& leak) {
  return {{"bytes_per_iteration", leak.bytes_per_iteration}, {"cuts", leak.cuts}};
}

Json PeaksJson(const profiler::IterationPeaks& peaks) {
  return {{"least", peaks.least.count()}, {"most", peaks.most.count()}, {"iterations", peaks.rounds}};
}

Json LifetimeClassJson(const profiler::LifetimeClass& c) {
  return {{"from", c.from}, {"blocks", c.blocks}, {"bytes", c.bytes.count()}};
}

Json StreamJson(const profiler::StreamUse& use) {
  return {{"stream", fmt::format("{:#x}", static_cast<uint64_t>(use.stream))},
          {"allocs", use.allocs},
          {"allocated", use.allocated.count()},
          {"live_peak", use.live_peak.count()},
          {"blocks_at_peak", use.blocks_at_peak},
          {"bytes_at_peak", use.at_peak.count()}};
}

Json LibraryJson(const profiler::LibraryUse& use) {
  return {{"library", use.library}, {"blocks", use.blocks}, {"bytes", use.bytes.count()}};
}

Json SiteJson(const profiler::Site& site, const profiler::SiteBytes& at) {
  return {{"label", site.label},       {"file", site.file},       {"line", site.line},
          {"function", site.function}, {"library", site.library}, {"blocks", at.blocks},
          {"bytes", at.bytes.count()}};
}

Json KindJson(const profiler::ActivityTotal& total) {
  return {
      {"kind", NameOf(total.kind)}, {"count", total.count}, {"ns", total.ns}, {"bytes", total.bytes.count()}};
}

Json NamedJson(const profiler::StackTable& stacks, const profiler::ActivityTotal& total) {
  return {{"kind", NameOf(total.kind)},
          {"name", NameOf(stacks, total.name)},
          {"count", total.count},
          {"ns", total.ns},
          {"bytes", total.bytes.count()}};
}

Json ActivityJson(const profiler::StackTable& stacks, const profiler::Activity& activity) {
  return {{"kind", NameOf(activity.kind)},
          {"name", NameOf(stacks, activity.name)},
          {"track", activity.track},
          {"begin_ns", activity.begin_ns},
          {"duration_ns", activity.duration_ns}};
}

Json DeviceJson(const profiler::StackTable& stacks, const profiler::ActivityStats& device) {
  const auto named = [&](const profiler::ActivityTotal& total) { return NamedJson(stacks, total); };
  const auto under_way = [&](const profiler::Activity& activity) { return ActivityJson(stacks, activity); };
  return {{"totals", ArrayOf(device.by_kind, KindJson)},
          {"by_name", ArrayOf(device.by_name, named)},
          {"at_peak", ArrayOf(device.at, under_way)}};
}

}  // namespace

std::string StatsJson(const LoadedInput& input, const InputStats& result) {
  const profiler::Stats& stats = result.stats;
  const profiler::Trace& trace = input.content.trace;
  const auto site = [&](const profiler::SiteBytes& at) { return SiteJson(result.sites.sites[at.site], at); };
  Json json = {{"input", input.name},
               {"format", NameOf(input.content.format)},
               {"rank", trace.metadata.rank},
               {"world_size", trace.metadata.world_size},
               {"device", DeviceOf(input).value_or(0)},
               {"events", stats.events},
               {"allocs", stats.allocs},
               {"frees", stats.frees},
               {"marks", stats.marks},
               {"allocated", stats.allocated.count()},
               {"live_peak", stats.live_peak.count()},
               {"peak_at", stats.peak_at},
               {"lower_bound", result.lower_bound.count()},
               {"live_at_end", stats.live_at_end.count()},
               {"dropped", trace.dropped},
               {"closed", trace.closed},
               {"whole", WhyNotWhole(input).empty()},
               {"notes", trace.notes},
               {"iterations", stats.iterations},
               {"iteration", OrNull(stats.iteration, IterationJson)},
               {"histogram", ArrayOf(stats.histogram, SizeClassJson)},
               {"at_peak", ArrayOf(stats.at_peak, SizeCountJson)},
               {"leak", OrNull(stats.leak, LeakJson)},
               {"iteration_peaks", OrNull(stats.peaks, PeaksJson)},
               {"lifetimes",
                {{"unit", result.lifetime_unit}, {"classes", ArrayOf(stats.lifetimes, LifetimeClassJson)}}},
               {"attributed", result.attributed},
               {"frames_without_symbols", input.symbols.unnamed},
               {"streams", ArrayOf(result.streams, StreamJson)},
               {"libraries", ArrayOf(result.libraries, LibraryJson)},
               {"sites", ArrayOf(result.sites_at_peak, site)}};
  if (result.device) json["device_activity"] = DeviceJson(trace.stacks, *result.device);
  return JsonLine(json) + "\n";
}

}  // namespace reprise::cli
