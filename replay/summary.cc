#include "replay/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "replay/output_dir.h"

namespace reprise::replay {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

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
                   ? "no iteration was found"
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
             fmt::format("of {} allocations; plans adopted: {}", counters.period, counters.plans));
}

}  // namespace

std::string FormatSize(Bytes bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < kKiB) return fmt::format("{} B", bytes.count());
  double value = static_cast<double>(bytes.count()) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string SummaryText(const Summary& summary) {
  const Counters& counters = summary.counters;
  std::string text = fmt::format("reprise: {} (pid {}), {}\n", summary.command, summary.pid,
                                 summary.mode == Mode::kRecord ? "recorded" : "served");
  if (!summary.complete) {
    return text + "  ended inside an allocation; what was counted could not be read\n";
  }
  const HostCounters& host = summary.host_counters;
  text += Row("requests", std::to_string(counters.requests + host.passed),
              fmt::format("of at least {}", FormatSize(summary.threshold)));
  text += Row("live peak", FormatSize(counters.live_peak), "the most the job held at once");
  text += Row("reserved peak", FormatSize(counters.reserved_peak),
              fmt::format("the most held for it, {:.3f} of the live peak",
                          Share(counters.reserved_peak.count(), counters.live_peak.count())));
  if (summary.mode == Mode::kServe) text += PlanRows(counters);
  text += fmt::format(
      "  passed {}, conflicts {}, mismatches {}, lost {}, failed plans {}, unknown frees {}, late frees {}, "
      "errors {}\n",
      counters.passed + host.passed, counters.conflicts, counters.mismatches, counters.times_lost,
      counters.plans_failed, counters.unknown_frees, host.late_frees, host.errors);
  if (!summary.trace.empty()) {
    const TraceCounters& trace = summary.trace_counters;
    text += Row("trace", FormatSize(trace.bytes),
                fmt::format("{} events in {}{}", trace.events, summary.trace,
                            trace.dropped == 0 ? "" : fmt::format(", {} DROPPED", trace.dropped)));
    if (!trace.stopped.empty()) text += fmt::format("  the trace ended early: {}\n", trace.stopped);
    text += fmt::format("reprise: next: reprise stats {}\n", summary.trace);
  } else {
    text += "reprise: next: set REPRISE_OUT=DIR for a trace, then reprise stats DIR/trace.reprise\n";
  }
  return text;
}

std::string SummaryJson(const Summary& summary) {
  const Counters& counters = summary.counters;
  nlohmann::ordered_json json = {
      {"mode", NameOf(summary.mode)},
      {"pid", summary.pid},
      {"host", summary.host},
      {"command", summary.command},
      {"threshold", summary.threshold.count()},
      {"capacity", summary.capacity.count()},
      {"complete", summary.complete},
      {"requests", counters.requests + summary.host_counters.passed},
      {"planned", counters.planned},
      {"arena", counters.arena},
      {"passed", counters.passed + summary.host_counters.passed},
      {"conflicts", counters.conflicts},
      {"mismatches", counters.mismatches},
      {"times_lost", counters.times_lost},
      {"plans", counters.plans},
      {"plans_failed", counters.plans_failed},
      {"plans_dropped", counters.plans_dropped},
      {"iterations", counters.iterations},
      {"period", counters.period},
      {"first_planned_iteration", counters.first_planned_iteration},
      {"first_planned_request", counters.first_planned_request},
      {"planned_after_plan", Share(counters.planned_requests_after_plan, counters.requests_after_plan)},
      {"planned_bytes_after_plan",
       Share(counters.planned_bytes_after_plan.count(), counters.bytes_after_plan.count())},
      {"live", counters.live.count()},
      {"live_peak", counters.live_peak.count()},
      {"slab", counters.slab.count()},
      {"lower_bound", counters.lower_bound.count()},
      {"reserved", counters.reserved.count()},
      {"reserved_peak", counters.reserved_peak.count()},
      {"granules_moved", counters.granules_moved},
      {"unknown_frees", counters.unknown_frees},
      {"late_frees", summary.host_counters.late_frees},
      {"errors", summary.host_counters.errors},
      {"trace", summary.trace},
      {"trace_events", summary.trace_counters.events},
      {"trace_bytes", summary.trace_counters.bytes.count()},
      {"trace_dropped", summary.trace_counters.dropped},
      {"trace_stopped", summary.trace_counters.stopped},
  };
  // A command line may hold any bytes; JSON may not.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status WriteSummary(const std::string& path, const Summary& summary) {
  return WriteFileAtomically(path, SummaryJson(summary));
}

}  // namespace reprise::replay
