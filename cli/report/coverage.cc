#include "cli/report/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/quantity.h"
#include "replay/engine.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

int64_t Count(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string Text(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool Truth(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// What a summary says of the trace's part of the job: a device has a trace of its own, and the summary's top
// level is not about all of them.
struct Part {
  const Json* counters = nullptr;  // null: the summary does not say what was counted
  std::string where;               // of which device, where there are several
  bool running = false;            // not at the job's end
};

bool Counted(const Json& part) {
  if (!part.is_object()) return false;
  const auto requests = part.find("requests");
  const auto complete = part.find("complete");
  return requests != part.end() && requests->is_number_integer() &&
         (complete == part.end() || !complete->is_boolean() || complete->get<bool>());
}

Part PartOf(const Json& summary, int64_t device) {
  if (!Counted(summary)) return {};
  const auto devices = summary.find("devices");
  const bool running = Truth(summary, "running");
  if (devices == summary.end() || !devices->is_array() || devices->empty()) return {&summary, "", running};
  for (const Json& each : *devices) {
    if (!Counted(each) || !each.contains("device") || Count(each, "device") != device) continue;
    return {&each, devices->size() > 1 ? fmt::format(" on device {}", device) : "", running};
  }
  return {};
}

// Why allocations of the job are not in its trace. The first that applies says where it ended.
std::vector<std::string> Reasons(const Json& counters, const profiler::Trace& trace, bool redacted) {
  std::vector<std::string> reasons;
  const std::string stopped = Text(counters, "trace_stopped");
  if (!stopped.empty() && !redacted) {
    reasons.push_back(fmt::format("it ended early: {}", stopped));
  } else if (!trace.WhyEnded().empty()) {
    reasons.emplace_back(trace.WhyEnded());
  } else if (!stopped.empty()) {
    reasons.emplace_back("it ended early");
  } else if (Count(counters, "plans") > 0) {  // earlier versions do not say so in the trace
    reasons.emplace_back("while serving, it ends when the first plan is adopted");
  }
  if (const int64_t passed = Count(counters, "passed"); passed > 0) {
    reasons.push_back(fmt::format("{} were left to the real allocator", passed));
  }
  if (const int64_t dropped = Count(counters, "trace_dropped"); dropped > 0 && stopped.empty()) {
    reasons.push_back(fmt::format("{} events were dropped", dropped));
  }
  return reasons;
}

std::string ByTraceAlone(const profiler::Trace& trace) {
  return trace.whole()
             ? "The recording was closed in order. By earlier versions it also was where, while serving, "
               "the first plan was adopted."
             : fmt::format("The trace may not hold all of the job: {}.", trace.WhyNotWhole());
}

std::string OfTrace(const profiler::Trace& trace, int64_t allocs, const Json& summary, bool redacted) {
  const Part part = PartOf(summary, trace.metadata.device);
  if (part.counters == nullptr) return ByTraceAlone(trace);
  const int64_t requests = Count(*part.counters, "requests");
  if (requests <= allocs) {
    if (part.running) return ByTraceAlone(trace);
    return fmt::format("The trace covers all of the job's {} allocations{}.", requests, part.where);
  }
  const std::vector<std::string> reasons = Reasons(*part.counters, trace, redacted);
  const std::string share =
      part.running ? "when its last summary was written" : FormatShare(replay::Share(allocs, requests));
  return fmt::format("The trace covers {} of the job's {} allocations{} ({}){}{}.", allocs, requests,
                     part.where, share, reasons.empty() ? "" : ": ", fmt::join(reasons, "; "));
}

std::string OfSnapshot(const profiler::Snapshot& snapshot, int64_t allocs) {
  if (snapshot.converted) {
    return fmt::format(
        "The snapshot was converted from another input and holds what that did, which {} all of the job.",
        snapshot.WhyNotWhole().empty() ? "counts as" : "is not");
  }
  return fmt::format(
      "A snapshot holds the last stretch of a job: {} of the {} allocations were live before its history "
      "begins and are taken as allocated first.",
      snapshot.live_at_begin, allocs);
}

}  // namespace

std::string Coverage(const LoadedInput& input, int64_t allocs, const Json& summary, bool redacted) {
  switch (input.content.format) {
    case profiler::InputFormat::kLifetimeCsv:
      return "The input is a list of lifetimes: one iteration, in no recorded order.";
    case profiler::InputFormat::kEventCsv:
      return "The input is a list of events; it does not say what part of a job it covers.";
    case profiler::InputFormat::kSnapshot:
      return OfSnapshot(input.content.snapshot, allocs);
    case profiler::InputFormat::kKineto:
      return "A trace of PyTorch's profiler holds what happened while the profiler was on.";
    case profiler::InputFormat::kTrace:
      break;
  }
  return OfTrace(input.content.trace, allocs, summary, redacted);
}

Bytes JobsPeak(const LoadedInput& input, Bytes peak, const Json& summary) {
  if (input.content.format != profiler::InputFormat::kTrace) return peak;
  const Part part = PartOf(summary, input.content.trace.metadata.device);
  return part.counters == nullptr ? peak : std::max(peak, Bytes(Count(*part.counters, "live_peak")));
}

}  // namespace reprise::cli
