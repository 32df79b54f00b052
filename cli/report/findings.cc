#include "cli/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/console.h"
#include "planner/portfolio.h"
#include "replay/models/models.h"

namespace reprise::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSitesTried = 20;            // without each of which the peak is worked out
constexpr int64_t kMostWholeBlocks = 20'000;  // of an input that is planned as a whole
constexpr double kPlanShare = 0.2;            // of the time
constexpr double kMostPlanSeconds = 3;

class Gatherer {
 public:
  Gatherer(const LoadedInput& input, std::optional<Bytes> capacity, const GatherLimits& limits)
      : input_(input),
        changes_(TimelineOf(input.content.lifetimes)),
        events_(input.is_lifetimes() ? changes_.events : input.content.trace.events),
        capacity_(capacity),
        limits_(limits),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds))) {}

  absl::StatusOr<Findings> Gather() {
    profiler::FoundIteration found;
    absl::StatusOr<InputStats> stats = StatsOfInput(input_, &found);
    if (!stats.ok()) return stats.status();
    findings_.stats = *std::move(stats);
    findings_.events = events_.size();
    findings_.blocks = BlocksOf(events_, limits_.blocks);
    findings_.points = PointsOf(events_, findings_.blocks, limits_.points);
    AddSites();
    AddPlan(found);
    AddRecorded();
    if (input_.is_lifetimes()) {
      findings_.left_out.emplace_back("other allocators: a lifetime CSV has no order of events");
    } else {
      AddOurs();
      AddModels();
      AddMerged();
    }
    return std::move(findings_);
  }

 private:
  bool over() const { return Clock::now() >= end_; }
  double PlanSeconds() const { return std::min(kMostPlanSeconds, limits_.seconds * kPlanShare); }
  void LeaveOut(std::string_view what) {
    LeaveOut(what, fmt::format("not finished within {:g} s", limits_.seconds));
  }
  void LeaveOut(std::string_view what, std::string_view why) {
    findings_.left_out.push_back(fmt::format("{}: {}", what, why));
  }
  void LeaveOut(std::string_view what, const absl::Status& why) {
    if (absl::IsDeadlineExceeded(why)) return LeaveOut(what);
    LeaveOut(what, MessageOf(why));
  }

  void AddSites() {
    const InputStats& stats = findings_.stats;
    if (input_.is_lifetimes() || stats.sites.sites.empty()) return;
    findings_.peak_stacks = profiler::StacksLiveAt(events_, stats.stats.peak_at);
    std::vector<uint32_t> tried;
    for (const profiler::SiteBytes& site : stats.sites_at_peak) {
      if (tried.size() < kSitesTried) tried.push_back(site.site);
    }
    const std::vector<Bytes> peaks = profiler::PeaksWithout(events_, stats.sites, tried);
    for (size_t i = 0; i < tried.size(); ++i) findings_.without_site.push_back({tried[i], peaks[i]});
  }

  void AddPlan(const profiler::FoundIteration& found) {
    if (!found.event_of_slot.empty()) {
      absl::StatusOr<replay::OfflinePlan> plan = replay::PlanFound(found, PlanSeconds());
      if (plan.ok()) {
        findings_.plan = *std::move(plan);
      } else {
        LeaveOut("the plan of an iteration", plan.status());
      }
      return;
    }
    // A buffer with gaps counts once, however many blocks are drawn for it.
    if (const int64_t blocks = findings_.stats.stats.allocs; blocks > kMostWholeBlocks) {
      findings_.left_out.push_back(fmt::format(
          "a plan: no iteration was found, and {} blocks are too many to plan as a whole", blocks));
      return;
    }
    constexpr std::string_view kWhat = "the plan of the whole input";
    const absl::StatusOr<planner::Problem> problem = ProblemOf(input_);
    if (!problem.ok()) return LeaveOut(kWhat, problem.status());
    planner::Budget budget;
    budget.seconds = PlanSeconds();
    const absl::StatusOr<planner::Solution> solution = planner::Solve(*problem, budget);
    if (!solution.ok()) return LeaveOut(kWhat, solution.status());
    findings_.whole_slab = solution->placement.slab;
    // Buffers are numbered in order of allocation; of lifetimes the id of an event is the buffer's number.
    std::vector<Offset> offsets(events_.size(), replay::Track::kNowhere);
    size_t next = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      const profiler::Event& event = events_[i];
      if (event.kind != profiler::EventKind::kAlloc) continue;
      offsets[i] =
          solution->placement.offsets[input_.is_lifetimes() ? static_cast<size_t>(event.id) : next++];
    }
    findings_.layouts.push_back(
        LayoutOf("plan", "the planner's placement of the whole input", findings_.blocks, offsets));
  }

  void AddRecorded() {
    if (input_.content.format != profiler::InputFormat::kSnapshot) return;
    absl::StatusOr<Contender> recorded = Recorded(input_.content.snapshot, findings_.stats.stats.live_peak);
    if (recorded.ok()) {
      findings_.contenders.push_back(*std::move(recorded));
    } else {
      LeaveOut("what was reserved as recorded", recorded.status());
    }
    const std::vector<Offset>& addresses = input_.content.snapshot.addresses;
    if (addresses.size() == events_.size()) {
      findings_.layouts.push_back(
          LayoutOf("as recorded", "the addresses in the snapshot", findings_.blocks, addresses));
    }
  }

  void Add(Contender contender, const replay::Track& track) {
    if (contender.stopped) return LeaveOut(contender.name);
    if (contender.failed) return LeaveOut(contender.name, kNoRoom);
    findings_.layouts.push_back(LayoutOf(contender.name, contender.meaning, findings_.blocks, track.offsets));
    findings_.reserved.push_back({contender.name, LargestOfEach(track.reserved, findings_.points.step)});
    findings_.contenders.push_back(std::move(contender));
  }

  replay::Watch Watching(replay::Track* track) const {
    return {.track = track, .stop = [this] { return over(); }};
  }

  void AddOurs() {
    if (over()) return LeaveOut("reprise");
    replay::Track track;
    absl::StatusOr<Contender> ours = Ours(events_, capacity_, Watching(&track));
    if (!ours.ok()) return LeaveOut("reprise", ours.status());
    Add(*std::move(ours), track);
  }

  void AddModels() {
    for (const replay::ModelInfo& model : replay::Models()) {
      if (over()) {
        LeaveOut(model.name);
        continue;
      }
      replay::Track track;
      Contender contender = Modelled(model, events_, capacity_, Watching(&track));
      Add(std::move(contender), track);
    }
  }

  std::vector<profiler::Event> OnOneStream() const {
    std::vector<profiler::Event> merged = events_;
    for (profiler::Event& event : merged) event.stream = findings_.blocks.streams[0];
    return merged;
  }

  void AddMerged() {
    if (findings_.blocks.streams.size() < 2) return;
    // Made when there is time to use them: they take as much as the input.
    std::vector<profiler::Event> merged;
    for (const Contender& apart : findings_.contenders) {
      const auto model = std::ranges::find(replay::Models(), apart.name, &replay::ModelInfo::name);
      if (apart.name != "reprise" && model == replay::Models().end()) continue;  // as recorded
      const std::string what = fmt::format("{} with merged streams", apart.name);
      if (over()) {
        LeaveOut(what);
        continue;
      }
      if (merged.empty()) merged = OnOneStream();
      absl::StatusOr<Contender> together = apart.name == "reprise"
                                               ? Ours(merged, std::nullopt, Watching(nullptr))
                                               : Modelled(*model, merged, std::nullopt, Watching(nullptr));
      if (!together.ok()) {
        LeaveOut(what, together.status());
      } else if (together->stopped) {
        LeaveOut(what);
      } else if (together->failed) {
        LeaveOut(what, kNoRoom);
      } else {
        findings_.merged.push_back({apart.name, apart.reserved_peak, together->reserved_peak});
      }
    }
  }

  const LoadedInput& input_;
  const Timeline changes_;                      // of a lifetime CSV
  const std::vector<profiler::Event>& events_;  // the input's, or those
  const std::optional<Bytes> capacity_;
  const GatherLimits limits_;
  const Clock::time_point end_;
  Findings findings_;
};

}  // namespace

absl::StatusOr<Findings> Gather(const LoadedInput& input, std::optional<Bytes> capacity,
                                const GatherLimits& limits) {
  return Gatherer(input, capacity, limits).Gather();
}

}  // namespace reprise::cli
