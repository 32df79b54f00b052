#include "cli/fit_model.h"

#include <algorithm>
#include <map>

#include "profiler/site_labels.h"

namespace reprise::cli {
namespace {

// Of who found room at each batch: what the others reserved until then is not what they need.
std::vector<Overhead> OverheadsOf(const std::vector<BatchRun>& runs) {
  std::vector<Overhead> overheads;
  for (size_t i = 0; i < runs[0].contenders.size(); ++i) {
    if (std::ranges::any_of(runs, [i](const BatchRun& run) { return run.contenders[i].failed; })) continue;
    const Contender& contender = runs[0].contenders[i];
    Overhead overhead{.name = contender.name,
                      .most_added = static_cast<double>(contender.most_added.count())};
    for (const BatchRun& run : runs) {
      overhead.seen.push_back({run.batch, static_cast<double>(run.stats.live_peak.count()),
                               static_cast<double>(run.contenders[i].reserved_peak.count())});
    }
    overheads.push_back(std::move(overhead));
  }
  return overheads;
}

void AddSites(FitModel& model) {
  const auto has_none = [](const BatchRun& run) { return run.sites_at_peak.empty(); };
  if (std::ranges::any_of(model.runs, has_none)) return;
  std::vector<profiler::SiteTable*> tables;
  for (BatchRun& run : model.runs) tables.push_back(&run.sites);
  profiler::TellApart(tables);
  std::map<std::string, std::vector<Bytes>> bytes_of;  // by run
  for (size_t i = 0; i < model.runs.size(); ++i) {
    const InputStats& stats = model.runs[i];
    for (const profiler::SiteBytes& at : stats.sites_at_peak) {
      std::vector<Bytes>& bytes = bytes_of[stats.sites.sites[at.site].label];
      bytes.resize(model.runs.size());
      bytes[i] += at.bytes;
    }
  }
  for (const auto& [label, bytes] : bytes_of) {
    std::vector<profiler::Measurement> points;
    for (size_t i = 0; i < bytes.size(); ++i) {
      points.push_back({static_cast<double>(model.runs[i].batch), static_cast<double>(bytes[i].count())});
    }
    model.sites.push_back({label, profiler::LeastSquares(points), bytes.front(), bytes.back()});
    model.moved += std::max(Bytes(0), bytes.front() - bytes.back());
  }
  std::ranges::stable_sort(model.sites, std::ranges::greater(),
                           [](const SiteGrowth& site) { return site.line.slope; });
}

// How much of a capacity is taken to be left for live bytes. What is reserved beside them jumps with the batch, as
// blocks outgrow segments, and no input shows how far. It is expected to be the share that it was at the largest;
// with caution it is so many times what it was at the worst, as bytes or as a share, and as much more as one request
// can add. How often a job needed more than that is in docs/results/fit.md.
constexpr double kCaution = 2;
struct Room {
  double cautious, expected;
};
Room RoomFor(const Overhead& overhead, double capacity) {
  Room room{capacity, capacity / overhead.seen.back().ratio()};
  for (const Overhead::Seen& seen : overhead.seen) {
    const double as_share = (capacity - overhead.most_added) / (1 + kCaution * (seen.ratio() - 1));
    const double as_bytes = capacity - overhead.most_added - kCaution * (seen.reserved - seen.live);
    room.cautious = std::min({room.cautious, as_share, as_bytes});
  }
  return room;
}

}  // namespace

Bytes Unrecorded(const BatchRun& run, const BatchRun& largest) {
  const double scale = static_cast<double>(run.batch) / static_cast<double>(largest.batch);
  const auto threshold = static_cast<double>(run.input.content.trace.metadata.threshold.count());
  double bytes = 0;
  for (const profiler::SizeCount& c : largest.stats.at_peak) {
    const double here = scale * static_cast<double>(c.size.count());
    if (here < threshold) bytes += here * static_cast<double>(c.blocks);
  }
  return Bytes(static_cast<int64_t>(bytes));
}

Bytes Apart(const BatchRun& run) {
  const auto& peaks = run.stats.peaks;
  return peaks ? peaks->most - peaks->least : Bytes(0);
}

profiler::Measurement LivePeak(const BatchRun& run, const BatchRun& largest) {
  return {.x = static_cast<double>(run.batch),
          .y = static_cast<double>(run.stats.live_peak.count()),
          .error = static_cast<double>((Apart(run) + Unrecorded(run, largest)).count())};
}

FitModel ModelOf(std::vector<BatchRun> runs) {
  std::ranges::stable_sort(runs, std::ranges::less(), &BatchRun::batch);
  FitModel model{.runs = std::move(runs)};
  std::vector<profiler::Measurement> points;
  points.reserve(model.runs.size());
  for (const BatchRun& run : model.runs) points.push_back(LivePeak(run, model.runs.back()));
  model.live = profiler::FitLine(points);
  model.overheads = OverheadsOf(model.runs);
  AddSites(model);
  return model;
}

Largest LargestBatch(const profiler::LineFit& live, const Overhead& overhead, Bytes capacity) {
  const auto all = static_cast<double>(capacity.count());
  // A batch that was run is known to the byte: one that is short of it is not a matter of rounding.
  const auto most_within = [&](const profiler::Line& line, double room) {
    std::optional<int64_t> most = profiler::MostWithin(line, room, live.largest_x);
    const auto was_run = [&](const Overhead::Seen& seen) { return seen.batch == most; };
    if (std::ranges::any_of(overhead.seen, was_run) && line.At(static_cast<double>(*most)) > room + 0.5)
      --*most;
    return most;
  };
  const Room room = RoomFor(overhead, all);
  Largest largest{.expected = profiler::LargestWithin(live.line, room.expected, live.largest_x)};
  largest.cautious = largest.expected;
  if (!largest.expected) return largest;
  largest.most = most_within(live.line, room.expected);
  for (const profiler::Line& line : live.extremes) {
    const auto cautious = profiler::LargestWithin(line, room.cautious, live.largest_x);
    const auto most = most_within(line, all);
    if (cautious) largest.cautious = std::min(*largest.cautious, *cautious);
    // One of the possible lines does not rise: nothing says where the end is.
    largest.most = most && largest.most ? std::optional(std::max(*largest.most, *most)) : std::nullopt;
  }
  for (const Overhead::Seen& seen : overhead.seen) {
    if (seen.reserved > all) continue;
    for (std::optional<int64_t>* const each : {&largest.cautious, &largest.expected, &largest.most}) {
      if (*each) *each = std::max(**each, seen.batch);
    }
  }
  return largest;
}

Overhead LiveAlone(const FitModel& model) {
  Overhead alone{.name = "live peak"};
  for (const BatchRun& run : model.runs) {
    const auto live = static_cast<double>(run.stats.live_peak.count());
    alone.seen.push_back({run.batch, live, live});
  }
  return alone;
}

std::vector<Overhead> AllOf(const FitModel& model) {
  std::vector<Overhead> all = {LiveAlone(model)};
  all.insert(all.end(), model.overheads.begin(), model.overheads.end());
  return all;
}

std::pair<double, double> RatiosOf(const Overhead& overhead) {
  const auto [least, most] =
      std::ranges::minmax_element(overhead.seen, {}, [](const Overhead::Seen& seen) { return seen.ratio(); });
  return {least->ratio(), most->ratio()};
}

}  // namespace reprise::cli
