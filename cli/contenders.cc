#include "cli/contenders.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/json_text.h"
#include "cli/or_null.h"
#include "cli/quantity.h"
#include "replay/models/run_model.h"
#include "replay/simulator.h"

namespace reprise::cli {

Contender Modelled(const replay::ModelInfo& model, const std::vector<profiler::Event>& events,
                   std::optional<Bytes> capacity, const replay::Watch& watch) {
  const auto unlimited = replay::RunModel(events, *model.make(Bytes(0)), watch);
  Contender contender{.name = std::string(model.name),
                      .meaning = std::string(model.meaning),
                      .most_added = model.most_added,
                      .reserved_peak = unlimited.reserved_peak,
                      .allocated_peak = unlimited.allocated_peak,
                      .driver_allocations = unlimited.driver_allocations,
                      .failed = unlimited.failed_at.has_value(),
                      .stopped = unlimited.stopped,
                      .overlaps = unlimited.overlaps};
  if (!capacity || contender.stopped || contender.failed) return contender;
  const auto limited = replay::RunModel(events, *model.make(*capacity), {.stop = watch.stop});
  contender.stopped = limited.stopped;
  contender.fits = !limited.failed_at.has_value();
  contender.failed_at = limited.failed_at;
  contender.overlaps += limited.overlaps;
  return contender;
}

absl::StatusOr<Contender> Ours(const std::vector<profiler::Event>& events, std::optional<Bytes> capacity,
                               const replay::Watch& watch) {
  const auto unlimited = replay::Simulate(events, {.watch = watch});
  if (!unlimited.ok()) return unlimited.status();
  Contender contender{.name = "reprise",
                      .meaning = "the engine that serves jobs, recording included",
                      .most_added = replay::kDeviceGranule,
                      .reserved_peak = unlimited->reserved_peak,
                      .allocated_peak = unlimited->counters.live_peak,
                      .driver_allocations = unlimited->memory_calls,
                      .failed = unlimited->counters.passed > 0,
                      .stopped = unlimited->stopped,
                      .overlaps = unlimited->overlaps};
  if (!capacity || contender.stopped || contender.failed) return contender;
  const auto limited = replay::Simulate(events, {.capacity = *capacity, .watch = {.stop = watch.stop}});
  if (!limited.ok()) return limited.status();
  contender.stopped = limited->stopped;
  contender.fits = limited->counters.passed == 0;
  contender.overlaps += limited->overlaps;
  return contender;
}

absl::StatusOr<std::vector<Contender>> AllContenders(const std::vector<profiler::Event>& events,
                                                     std::optional<Bytes> capacity) {
  std::vector<Contender> contenders;
  for (const replay::ModelInfo& model : replay::Models()) {
    contenders.push_back(Modelled(model, events, capacity));
  }
  absl::StatusOr<Contender> ours = Ours(events, capacity);
  if (!ours.ok()) return ours.status();
  contenders.push_back(*std::move(ours));
  return contenders;
}

absl::StatusOr<Contender> Recorded(const profiler::Snapshot& snapshot, Bytes live_peak) {
  if (snapshot.converted) {
    return absl::NotFoundError("it was converted to a snapshot, and no allocator has held its segments");
  }
  // No allocator holds less than what is live: segments have gone since, and their end is not in the history.
  if (snapshot.reserved_peak < live_peak) {
    return absl::NotFoundError(
        fmt::format("the snapshot tells of {} in segments, which were held at its end and not at the peak",
                    FormatSize(snapshot.reserved_peak)));
  }
  return Contender{.name = "as recorded",
                   .meaning = snapshot.segment_changes > 0 ? "the segments of the snapshot and its history"
                                                           : "the segments of the snapshot",
                   .reserved_peak = snapshot.reserved_peak};
}

std::string ContendersJson(const std::string& input, std::optional<Bytes> capacity, Bytes live_peak,
                           const std::vector<Contender>& contenders) {
  const auto count = [](Bytes bytes) { return bytes.count(); };
  using Json = nlohmann::ordered_json;
  Json json = {{"input", input},
               {"live_peak", live_peak.count()},
               {"capacity", OrNull(capacity, count)},
               {"allocators", Json::array()}};
  for (const Contender& c : contenders) {
    Json row = {{"name", c.name},
                {"reserved_peak", nullptr},
                {"allocated_peak", nullptr},
                {"driver_allocations", nullptr},
                {"fits", OrNull(c.fits)},
                {"failed_at", OrNull(c.failed_at)},
                {"reason", nullptr}};
    if (c.failed) {
      row["reason"] = kNoRoom;
    } else {
      row["reserved_peak"] = c.reserved_peak.count();
      row["allocated_peak"] = OrNull(c.allocated_peak, count);
      row["driver_allocations"] = OrNull(c.driver_allocations);
    }
    json["allocators"].push_back(std::move(row));
  }
  return JsonText(json);
}

}  // namespace reprise::cli
