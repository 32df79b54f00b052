#include "replay/core/summary.h"

#include <fmt/format.h>

#include <string_view>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/shell.h"
#include "base/sizes.h"
#include "replay/counters_json.h"

namespace reprise::replay {
namespace {

std::string_view NameOf(Mode mode) {
  switch (mode) {
    case Mode::kServe:
      return "serve";
    case Mode::kRecord:
      return "record";
    case Mode::kOff:
      break;
  }
  return "off";
}

std::string Row(std::string_view name, std::string_view value, std::string_view meaning) {
  return fmt::format("  {:<15}{:>12}  {}\n", name, value, meaning);
}

std::string PlanRows(const Counters& counters) {
  if (counters.plans == 0) {
    return Row("planned", "nothing",
               counters.iterations == 0
                   ? "no iteration was found: nothing repeats and comes back to the same live bytes"
                   : fmt::format("{} iterations found, no plan adopted", counters.iterations));
  }
  const double gap = Share(counters.slab.count(), counters.lower_bound.count()) - 1;
  return Row("slab", FormatSize(counters.slab),
             fmt::format("planned height; lower bound {}, gap {:.2f} %", FormatSize(counters.lower_bound),
                         100 * gap)) +
         Row("planned",
             fmt::format("{:.2f} %", 100 * Share(counters.planned_bytes_after_plan.count(),
                                                 counters.bytes_after_plan.count())),
             fmt::format("of the bytes since the first plan, from iteration {}",
                         counters.first_planned_iteration)) +
         Row("iterations", std::to_string(counters.iterations),
             fmt::format("the last of {} allocations of at least 4 KiB; plans adopted: {}{}", counters.period,
                         counters.plans,
                         counters.threads == 0
                             ? ""
                             : fmt::format("; {} threads, each for itself", counters.threads)));
}

std::string TraceRows(const TraceSummary& trace) {
  if (trace.path.empty()) return "";
  std::string text = Row(
      "trace", FormatSize(trace.counters.bytes),
      fmt::format("{} events in {}{}", trace.counters.events, Printable(trace.path),
                  trace.counters.dropped == 0 ? "" : fmt::format(", {} DROPPED", trace.counters.dropped)));
  if (trace.counters.activities > 0 || trace.counters.activities_dropped > 0) {
    text += Row("time line", std::to_string(trace.counters.activities),
                fmt::format("kernels, copies, sets and markers{}{}",
                            trace.counters.activities_full ? ", ended at its limit" : "",
                            trace.counters.activities_dropped == 0
                                ? ""
                                : fmt::format(", {} DROPPED", trace.counters.activities_dropped)));
  }
  if (trace.counters.without_stack > 0) {
    text += fmt::format("  {} allocations without a call stack\n", trace.counters.without_stack);
  }
  if (!trace.counters.stopped.empty())
    text += fmt::format("  the trace ended early: {}\n", Printable(trace.counters.stopped));
  return text;
}

// What the real allocator has served unrecorded is not heard of again.
std::string_view Held(bool all) {
  return all ? "the most the job held at once" : "the most that was served at once";
}

std::string SizeRows(const Counters& counters, std::string_view live) {
  return Row("live peak", FormatSize(counters.live_peak), live) +
         Row("reserved peak", FormatSize(counters.reserved_peak),
             fmt::format("the most held for it, {:.3f} of the live peak",
                         Share(counters.reserved_peak.count(), counters.live_peak.count())));
}

// Of what has been started as a part of something, whoever started that says what comes next.
std::string Next(const Summary& summary, const TraceSummary& trace) {
  if (!summary.run.empty() || (summary.files && trace.path.empty())) return "";
  return trace.path.empty()
             ? "reprise: next: set REPRISE_OUT=DIR for a trace, then reprise stats DIR/trace.reprise\n"
             : fmt::format("reprise: next: reprise stats {}\n", Printable(QuotedFile(trace.path)));
}

std::string PlansRow(const PlansSummary& plans, const Counters& counters) {
  std::string text;
  if (!plans.refused.empty()) {
    text =
        fmt::format("  the plans in {} were not used: {}\n", Printable(plans.read), Printable(plans.refused));
  } else if (!plans.read.empty()) {
    text = fmt::format("  the plans in {} were {}\n", Printable(plans.read),
                       counters.plans_resumed > 0 ? "followed" : "never met: the job allocated otherwise");
  }
  if (!plans.written.empty())
    text += fmt::format("  plans for the next run in {}\n", Printable(plans.written));
  return text;
}

std::string OversubscribedRows(const DeviceSummary& device) {
  if (device.granules_in_host_peak == 0) return "";
  std::string text =
      Row("oversubscribed", FormatSize(device.in_host_peak),
          fmt::format("at most in the host's memory, {} granules, which is slow; the device gave {}",
                      device.granules_in_host_peak, FormatSize(device.on_device_full)));
  const NextAttempt next = {device.counters.plan_needs, device.counters.live_peak, device.on_device_full};
  return text +
         Row("plan needs", next.Needs() == Bytes(0) ? "unknown" : FormatSize(next.Needs()), next.Verdict());
}

std::string DeviceText(const DeviceSummary& device, Mode mode) {
  std::string text = fmt::format("  device {}: {}\n", device.ordinal, device.name);
  if (!device.not_served.empty()) return text + fmt::format("  not served: {}\n", device.not_served);
  if (!device.complete) return text + "  ended inside an allocation; what was counted could not be read\n";
  const Counters& c = device.counters;
  text += Row("requests", std::to_string(c.requests),
              c.outside == 0 ? "" : fmt::format("{} of them recorded and left to the driver", c.outside));
  text += SizeRows(c, Held(device.capture_passes + device.unrecorded == 0));
  if (mode == Mode::kServe) text += PlanRows(c);
  if (c.held_for_streams > Bytes(0)) {
    text += Row("for streams", FormatSize(c.held_for_streams),
                "of that held, at most, so that they need not wait for one another's memory");
  }
  text += OversubscribedRows(device);
  text += fmt::format(
      "  passed {}, conflicts {}, mismatches {}, lost {}, withheld {}, failed plans {}, unknown frees {}, "
      "stream waits {}, host waits {}, memory waits {}, captured {}, unrecorded {}, exports refused "
      "{}\n",
      c.passed, c.conflicts, c.mismatches, c.times_lost, c.withheld, c.plans_failed, c.unknown_frees,
      c.stream_waits, c.host_waits, device.memory_waits, device.capture_passes, device.unrecorded,
      device.refused_exports);
  if (!device.refusal.empty()) text += fmt::format("  the arena was refused memory: {}\n", device.refusal);
  if (device.segments_only) {
    text +=
        "  only whole segments were seen: the job's own allocator caches and hides its tensors; for PyTorch "
        "set\n"
        "  PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync (reprise run does, unless the job sets its own)\n";
  }
  return text + PlansRow(device.plans, c) + TraceRows(device.trace);
}

void AddCounters(JsonWriter& json, const Counters& counters) {
  ForEachCounter(counters, [&](const char* name, const auto& value) { json.Field(name, value); });
}

void AddPlans(JsonWriter& json, const PlansSummary& plans) {
  json.Field("plans_read", plans.read);
  json.Field("plans_refused", plans.refused);
  json.Field("plans_written", plans.written);
}

void AddTrace(JsonWriter& json, const TraceSummary& trace) {
  json.Field("trace", trace.path);
  json.Field("trace_events", trace.counters.events);
  json.Field("trace_bytes", trace.counters.bytes.count());
  json.Field("trace_dropped", trace.counters.dropped);
  json.Field("trace_stopped", trace.counters.stopped);
  json.Field("trace_full", trace.counters.full);
  json.Field("trace_after_end", trace.counters.after_end);
  json.Field("trace_without_stack", trace.counters.without_stack);
  json.Field("trace_activities", trace.counters.activities);
  json.Field("trace_activities_dropped", trace.counters.activities_dropped);
  json.Field("trace_activities_full", trace.counters.activities_full);
}

void AddDevice(JsonWriter& json, const DeviceSummary& device) {
  json.BeginObject();
  json.Field("device", device.ordinal);
  json.Field("name", device.name);
  json.Field("complete", device.complete);
  json.Field("not_served", device.not_served);
  AddCounters(json, device.counters);
  json.Field("streams", device.counters.streams);
  json.Field("stream_waits", device.counters.stream_waits);
  json.Field("stream_events", device.counters.stream_events);
  json.Field("host_waits", device.counters.host_waits);
  json.Field("held_for_streams", device.counters.held_for_streams.count());
  json.Field("memory_waits", device.memory_waits);
  json.Field("plan_needs", device.counters.plan_needs.count());
  json.Field("granules_in_host", device.granules_in_host);
  json.Field("granules_in_host_peak", device.granules_in_host_peak);
  json.Field("in_host_peak", device.in_host_peak.count());
  json.Field("on_device_full", device.on_device_full.count());
  json.Field("capture_passes", device.capture_passes);
  json.Field("unrecorded", device.unrecorded);
  json.Field("refused_exports", device.refused_exports);
  json.Field("refusal", device.refusal);
  json.Field("segments_only", device.segments_only);
  AddPlans(json, device.plans);
  AddTrace(json, device.trace);
  json.EndObject();
}

}  // namespace

std::string NextAttempt::Verdict() const {
  if (Needs() == Bytes(0)) return "no plan was adopted in this run";
  if (Needs() > given) {
    return fmt::format("{} more than the device gave: the next attempt does not fit either",
                       FormatSize(Needs() - given));
  }
  return "with all that was live at once, no more than the device gave: the next attempt has room by plan";
}

std::string SummaryText(const Summary& summary) {
  const Counters& counters = summary.counters;
  std::string text = fmt::format("reprise: {} (pid {}), {}\n", Printable(summary.command), summary.pid,
                                 summary.mode == Mode::kRecord ? "recorded" : "served");
  if (!summary.devices.empty()) {
    for (const DeviceSummary& device : summary.devices) text += DeviceText(device, summary.mode);
    if (summary.host_counters.errors > 0) text += fmt::format("  errors {}\n", summary.host_counters.errors);
    return text + Next(summary, summary.devices.front().trace);
  }
  if (!summary.complete) {
    return text + "  ended inside an allocation; what was counted could not be read\n";
  }
  const HostCounters& host = summary.host_counters;
  text += Row("requests", std::to_string(counters.requests + host.passed),
              fmt::format("of at least {}", FormatSize(summary.threshold)));
  text += SizeRows(counters, Held(counters.passed + host.passed == 0));
  if (summary.mode == Mode::kServe) text += PlanRows(counters);
  text += fmt::format(
      "  passed {}, conflicts {}, mismatches {}, lost {}, withheld {}, failed plans {}, unknown frees {}, "
      "late frees {}, errors {}\n",
      counters.passed + host.passed, counters.conflicts, counters.mismatches, counters.times_lost,
      counters.withheld, counters.plans_failed, counters.unknown_frees, host.late_frees, host.errors);
  if (host.passed_while_opening > 0) {
    text += fmt::format(
        "  of those passed {} were other threads' while the first request was served: one before they begin "
        "spares that\n",
        host.passed_while_opening);
  }
  text += PlansRow(summary.plans, counters);
  return text + TraceRows(summary.trace) + Next(summary, summary.trace);
}

std::string SummaryJson(const Summary& summary) {
  JsonWriter json(/*indent=*/2);
  json.BeginObject();
  json.Field("mode", NameOf(summary.mode));
  json.Field("pid", summary.pid);
  json.Field("host", summary.host);
  json.Field("launcher", summary.launched.launcher);
  json.Field("rank", summary.launched.rank);
  json.Field("local_rank", summary.launched.local_rank);
  json.Field("world_size", summary.launched.world_size);
  json.Field("job", summary.launched.job);
  json.Field("step", summary.launched.step);
  json.Field("restart", summary.launched.restart);
  json.Field("run", summary.run);
  json.Field("started", summary.started);
  json.Field("ended", summary.ended);
  json.Field("running", summary.running);
  json.Field("command", summary.command);
  json.Field("threshold", summary.threshold.count());
  json.Field("capacity", summary.capacity.count());
  json.Field("complete", summary.complete);
  Counters counters = summary.counters;
  counters.requests += summary.host_counters.passed;
  counters.passed += summary.host_counters.passed;
  AddCounters(json, counters);
  json.Field("passed_while_opening", summary.host_counters.passed_while_opening);
  json.Field("late_frees", summary.host_counters.late_frees);
  json.Field("errors", summary.host_counters.errors);
  AddPlans(json, summary.plans);
  json.Field("plans_solved_for_ranks", summary.solves.solved);
  json.Field("plans_taken_from_ranks", summary.solves.taken);
  json.Field("plans_lost_to_ranks", summary.solves.lost);
  AddTrace(json, summary.trace);
  if (!summary.devices.empty()) {
    json.Key("devices");
    json.BeginArray();
    for (const DeviceSummary& device : summary.devices) AddDevice(json, device);
    json.EndArray();
  }
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace reprise::replay
