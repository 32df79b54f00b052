#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/json_text.h"
#include "cli/quantity.h"
#include "cli/report/coverage.h"
#include "cli/report/page_source.h"
#include "cli/report/payload.h"
#include "cli/stats_json.h"
#include "planner/bound.h"
#include "replay/simulator.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPageFormat = 1;            // of the page's data
constexpr size_t kMostPeakStacks = 5000;  // in the flame graph
constexpr uint32_t kNowhere = UINT32_MAX;

const Contender* Find(const Findings& findings, std::string_view name) {
  const auto it = std::ranges::find(findings.contenders, name, &Contender::name);
  return it == findings.contenders.end() ? nullptr : &*it;
}

// The engine is tried as on a GPU. On the host, whose granules are smaller, the run itself may have held less.
std::string WhereTried(const LoadedInput& input) {
  const Bytes recorded = input.content.trace.metadata.granule;
  if (recorded == Bytes(0) || recorded == replay::kDeviceGranule) return "";
  return fmt::format("on a GPU, in granules of {}, ", FormatSize(replay::kDeviceGranule));
}

// `jobs_peak`: where it is above the input's, the input ends before it.
std::string VerdictOn(const LoadedInput& input, const Findings& findings, Bytes jobs_peak) {
  const Bytes peak = findings.stats.stats.live_peak;
  std::string text = fmt::format("Peak {}", FormatSize(jobs_peak));
  if (jobs_peak > peak) {
    text += fmt::format(", which the trace does not reach. Of the trace: peak {}", FormatSize(peak));
  }
  if (const Contender* const ours = Find(findings, "reprise")) {
    text += fmt::format("; {}Reprise would reserve {}, {} above the lower bound", WhereTried(input),
                        FormatSize(ours->reserved_peak),
                        FormatShare(planner::Gap(ours->reserved_peak, findings.stats.lower_bound)));
  } else if (findings.whole_slab) {
    text += fmt::format("; a plan needs {}, {} above the lower bound", FormatSize(*findings.whole_slab),
                        FormatShare(planner::Gap(*findings.whole_slab, findings.stats.lower_bound)));
  }
  if (const Contender* const torch = Find(findings, "torch-native")) {
    text +=
        fmt::format("; PyTorch's native allocator would have reserved {}", FormatSize(torch->reserved_peak));
  }
  return text + ".";
}

// Numbers and what holds them: names and paths are not in them.
Json CountersAlone(const Json& json) {
  if (!json.is_structured()) return json.is_string() ? Json() : json;
  Json kept = json.is_array() ? Json::array() : Json::object();
  for (const auto& item : json.items()) {
    Json value = CountersAlone(item.value());
    if (value.is_null()) continue;
    if (json.is_array()) {
      kept.push_back(std::move(value));
    } else {
      kept[item.key()] = std::move(value);
    }
  }
  return kept;
}

Json ProvenanceOf(const LoadedInput& input, const PageOptions& options) {
  const profiler::TraceMetadata& metadata = input.content.trace.metadata;
  Json json = {{"input", input.name},
               {"hash", input.hash},
               {"format", NameOf(input.content.format)},
               {"report", "reprise " REPRISE_VERSION},
               {"created", options.created},
               {"redacted", options.redacted}};
  if (!metadata.reprise_version.empty()) json["recorded_by"] = "reprise " + metadata.reprise_version;
  if (!metadata.started.empty()) json["recorded"] = metadata.started;
  if (!metadata.command.empty()) json["command"] = metadata.command;
  if (!metadata.host.empty()) json["host"] = metadata.host;
  if (metadata.threshold > Bytes(0)) json["threshold"] = metadata.threshold.count();
  return json;
}

// In the smallest unit that fits 32 bits; else as they are. The unit goes into `json`.
void AddOffsets(const std::string& name, const std::vector<Offset>& offsets, Payload& payload, Json& json) {
  int64_t unit = 0, most = 0;
  for (const Offset offset : offsets) {
    if (offset < Offset(0)) continue;
    unit = std::gcd(unit, offset.count());
    most = std::max(most, offset.count());
  }
  unit = std::max<int64_t>(1, unit);
  json["column"] = name;
  json["unit"] = unit;
  if (most / unit >= kNowhere) {
    json["unit"] = 1;
    std::vector<double> column;
    column.reserve(offsets.size());
    for (const Offset offset : offsets) column.push_back(static_cast<double>(offset.count()));
    return payload.Add(name, column);
  }
  std::vector<uint32_t> column;
  column.reserve(offsets.size());
  for (const Offset offset : offsets) {
    column.push_back(offset < Offset(0) ? kNowhere : static_cast<uint32_t>(offset.count() / unit));
  }
  payload.Add(name, column);
}

Json AddBlocks(const Findings& findings, Payload& payload) {
  std::vector<uint32_t> start, length, kind;
  uint32_t last = 0;
  for (const uint32_t i : findings.blocks.drawn) {
    const DrawnBlock& block = findings.blocks.all[i];
    start.push_back(block.start - std::exchange(last, block.start));
    length.push_back(block.end - block.start);
    kind.push_back(block.kind);
  }
  payload.Add("start", start);
  payload.Add("length", length);
  payload.Add("kind", kind);
  std::vector<uint32_t> stack, stream;
  std::vector<double> bytes;
  for (const BlockKind& k : findings.blocks.kinds) {
    bytes.push_back(static_cast<double>(k.bytes.count()));
    stack.push_back(static_cast<uint32_t>(k.stack));
    stream.push_back(k.stream);
  }
  payload.Add("kind.bytes", bytes);
  payload.Add("kind.stack", stack);
  payload.Add("kind.stream", stream);
  const auto most_hidden = std::ranges::max_element(findings.points.not_drawn);
  return {{"all", findings.blocks.all.size()},
          {"drawn", findings.blocks.drawn.size()},
          {"largest_left", findings.blocks.largest_left.count()},
          {"live_left", most_hidden == findings.points.not_drawn.end() ? 0.0 : *most_hidden}};
}

Json AddTimeline(const Findings& findings, Payload& payload) {
  payload.Add("live.least", findings.points.least);
  payload.Add("live.most", findings.points.most);
  payload.Add("not_drawn", findings.points.not_drawn);
  if (!findings.points.time_us.empty()) payload.Add("time", findings.points.time_us);
  Json json = {{"events", findings.events},
               {"step", findings.points.step},
               {"points", findings.points.most.size()},
               {"timed", !findings.points.time_us.empty()},
               {"reserved", Json::array()}};
  for (size_t i = 0; i < findings.reserved.size(); ++i) {
    const std::string name = fmt::format("reserved.{}", i);
    payload.Add(name, findings.reserved[i].most);
    json["reserved"].push_back({{"name", findings.reserved[i].name}, {"column", name}});
  }
  return json;
}

Json AddPlan(const Findings& findings, Payload& payload) {
  if (!findings.plan || findings.plan->blocks.empty()) return nullptr;
  const replay::OfflinePlan& plan = *findings.plan;
  std::vector<uint32_t> kind_of_event(findings.events);
  for (const DrawnBlock& block : findings.blocks.all) kind_of_event[block.start] = block.kind;
  std::vector<uint32_t> start, length, kind;
  std::vector<Offset> offsets;
  for (const replay::OfflinePlan::Block& block : plan.blocks) {
    start.push_back(static_cast<uint32_t>(block.begin));
    length.push_back(static_cast<uint32_t>(block.length));
    kind.push_back(kind_of_event[static_cast<size_t>(block.event)]);
    offsets.push_back(block.offset);
  }
  payload.Add("plan.start", start);
  payload.Add("plan.length", length);
  payload.Add("plan.kind", kind);
  const auto& iteration = findings.stats.stats.iteration;
  const Bytes persistent = iteration ? iteration->persistent : Bytes(0);
  // What stays and is no part of it.
  const Bytes beside = std::max(persistent - plan.live_at_cut, Bytes(0));
  Json json = {{"period", plan.period},
               {"rounds", plan.rounds},
               {"blocks", plan.blocks.size()},
               {"persistent", plan.persistent},
               {"slab", plan.slab.count()},
               {"beside", beside.count()},
               {"lower_bound", plan.lower_bound.count()},
               {"gap", planner::Gap(plan.slab, plan.lower_bound)},
               {"proven_optimal", plan.proven_optimal}};
  AddOffsets("plan.offset", offsets, payload, json);
  return json;
}

Json AddLayouts(const Findings& findings, Payload& payload) {
  Json layouts = Json::array();
  for (size_t i = 0; i < findings.layouts.size(); ++i) {
    const Layout& layout = findings.layouts[i];
    Json json = {{"name", layout.name},
                 {"meaning", layout.meaning},
                 {"height", layout.height.count()},
                 {"closed_up", layout.closed_up.count()}};
    AddOffsets(fmt::format("offset.{}", i), layout.offsets, payload, json);
    layouts.push_back(std::move(json));
  }
  return layouts;
}

Json SitesJson(const LoadedInput& input, const Findings& findings) {
  const profiler::StackTable& stacks = input.content.trace.stacks;
  Json json = {{"labels", Json::array()},
               {"site_of_stack", findings.stats.sites.site_of_stack},
               {"frames", Json::array()},
               {"stacks", Json::array()}};
  for (const profiler::Site& site : findings.stats.sites.sites) json["labels"].push_back(site.label);
  for (uint32_t i = 1; i <= stacks.frames(); ++i) {
    const profiler::Frame& f = stacks.frame(profiler::FrameId(i));
    json["frames"].push_back({static_cast<int>(f.kind), f.function, f.file, f.line, f.module});
  }
  for (uint32_t i = 0; i <= stacks.stacks(); ++i) {
    Json frames = Json::array();
    for (const profiler::FrameId id : stacks.stack(profiler::StackId(i)))
      frames.push_back(static_cast<uint32_t>(id));
    json["stacks"].push_back(std::move(frames));
  }
  return json;
}

Json WhatIfJson(const Findings& findings) {
  Json without = Json::array(), merged = Json::array();
  for (const WithoutSite& w : findings.without_site) {
    without.push_back({{"site", findings.stats.sites.sites[w.site].label},
                       {"peak", w.peak.count()},
                       {"saves", (findings.stats.stats.live_peak - w.peak).count()}});
  }
  for (const Merged& m : findings.merged) {
    merged.push_back({{"name", m.name}, {"apart", m.apart.count()}, {"together", m.together.count()}});
  }
  return {{"without_site", std::move(without)}, {"merged", std::move(merged)}};
}

}  // namespace

absl::StatusOr<std::string> PageOf(const LoadedInput& input, const Findings& findings,
                                   const PageOptions& options) {
  Json summary = Json::parse(options.summary, nullptr, /*allow_exceptions=*/false);
  if (summary.is_discarded()) summary = nullptr;
  const std::string coverage = Coverage(input, findings.stats.stats.allocs, summary, options.redacted);
  const Bytes jobs_peak = JobsPeak(input, findings.stats.stats.live_peak, summary);
  if (options.redacted) summary = CountersAlone(summary);
  Payload payload;
  Json head = {{"format", kPageFormat},
               {"verdict", VerdictOn(input, findings, jobs_peak)},
               {"coverage", coverage},
               {"provenance", ProvenanceOf(input, options)},
               {"stats", Json::parse(StatsJson(input, findings.stats))},
               {"compare", Json::parse(ContendersJson(input.name, options.capacity,
                                                      findings.stats.stats.live_peak, findings.contenders))},
               {"time_unit", input.is_lifetimes() ? "change" : "event"},
               {"peak_at_event", nullptr},
               {"notes", input.content.trace.notes},
               {"left_out", findings.left_out},
               {"blocks", AddBlocks(findings, payload)},
               {"timeline", AddTimeline(findings, payload)},
               {"plan", AddPlan(findings, payload)},
               {"layouts", AddLayouts(findings, payload)},
               {"what_if", WhatIfJson(findings)},
               {"streams", Json::array()},
               {"peak_stacks", Json::array()},
               {"peak_stacks_left", 0},
               {"counters", summary}};
  if (!input.is_lifetimes()) head["peak_at_event"] = findings.stats.stats.peak_at;
  for (const Stream stream : findings.blocks.streams)
    head["streams"].push_back(fmt::format("{:#x}", static_cast<uint64_t>(stream)));
  for (size_t i = 0; i < findings.peak_stacks.size(); ++i) {
    const profiler::StackBytes& s = findings.peak_stacks[i];
    if (i >= kMostPeakStacks) {
      head["peak_stacks_left"] = findings.peak_stacks.size() - kMostPeakStacks;
      break;
    }
    head["peak_stacks"].push_back({static_cast<uint32_t>(s.stack), s.bytes.count(), s.blocks});
  }
  const std::string text = fmt::format(R"({{"columns":{},"sites":{}}})", payload.Directory(),
                                       JsonLine(SitesJson(input, findings)));
  absl::StatusOr<std::string> data = payload.Pack(text);
  if (!data.ok()) return data.status();
  return WholePage(kReportPage, JsonLine(head), *data);
}

}  // namespace reprise::cli
