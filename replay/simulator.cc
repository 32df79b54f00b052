#include "replay/simulator.h"

#include <bit>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "replay/counted_memory.h"
#include "replay/device_behind.h"
#include "replay/overlap_checker.h"
#include "replay/saved_plan.h"

namespace reprise::replay {
namespace {

constexpr double kStepsPerSecond = 1e7;  // of the planner on a machine with nothing else to do
constexpr double kMostDelay = 30;        // by other work, or a build that checks itself

Engine::Options EngineOptions(const SimulationOptions& options) {
  Engine::Options engine;
  engine.capacity = options.capacity;
  engine.plan_seconds = options.plan_seconds;
  engine.solve = SolveByWork;
  engine.sequence_rules = options.sequence_rules;
  engine.arena_rules = options.arena_rules;
  engine.period.rules = options.period_rules;
  return engine;
}

// The blocks of recorded events in an engine.
class Blocks {
 public:
  Blocks(Engine& engine, const Engine::Guard& guard, DeviceBehind& device)
      : engine_(engine), guard_(guard), device_(device) {}

  // Where the engine places it; kNowhere: the real allocator would have served it, and it is live all the same.
  Offset Allocate(const profiler::Event& event) {
    device_.OnAllocation();
    const Engine::Request request = {
        .bytes = event.bytes, .alignment = event.alignment, .stream = device_.NumberOf(event.stream)};
    BlockInfo left;
    Offset offset = engine_.Allocate(guard_, request, &left);
    if (offset == Engine::kNowhere && engine_.order(guard_) != nullptr) {
      device_.CatchUp();  // as the host does before memory has run out
      offset = engine_.PlaceAgain(guard_, request, left).value_or(Engine::kNowhere);
    }
    if (offset == Engine::kNowhere) {
      engine_.KeepOutside(guard_, left, event.alignment);
      passed_[event.id] = left;
    } else {
      checker_.OnPlaced(offset, event.bytes);
      placed_[event.id] = offset;
    }
    return offset;
  }
  void Free(const profiler::Event& event) {
    device_.OnFree();
    const Stream stream = device_.NumberOf(event.stream);
    if (const auto placed = placed_.find(event.id); placed != placed_.end()) {
      checker_.OnFreed(placed->second);
      if (IsEveryStream(stream) && IsEveryStream(engine_.Find(guard_, placed->second)->info.stream))
        device_.CatchUp();
      engine_.Free(guard_, placed->second, stream);
      placed_.erase(placed);
    } else if (const auto passed = passed_.find(event.id); passed != passed_.end()) {
      engine_.FreeOutside(guard_, passed->second, stream);
      passed_.erase(passed);
    }
  }
  int64_t overlaps() const { return checker_.overlaps(); }

 private:
  Engine& engine_;
  const Engine::Guard& guard_;
  DeviceBehind& device_;
  OverlapChecker checker_;
  absl::flat_hash_map<BlockId, Offset> placed_;
  absl::flat_hash_map<BlockId, BlockInfo> passed_;
};

// One run of the job, which begins with these plans.
absl::StatusOr<SimulationResult> Run(std::span<const profiler::Event> events,
                                     const SimulationOptions& options,
                                     std::vector<Sequence::Expected> plans) {
  const auto start = std::chrono::steady_clock::now();
  // Addresses are free, so there are as many as can be: no stream is refused for want of them.
  auto memory = std::make_unique<CountedMemory>(options.granule, kLargestRange);
  const CountedMemory& counted = *memory;
  DeviceBehind device(options.behind);
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(
      EngineOptions(options), std::move(memory), &device, options.behind > 0 ? &device : nullptr);
  if (!engine.ok()) return engine.status();
  const Engine::Guard guard = (*engine)->Lock();
  if (absl::Status expected = (*engine)->Expect(guard, std::move(plans)); !expected.ok()) return expected;

  SimulationResult result;
  const Watch& watch = options.watch;
  watch.Begin(events.size());
  Blocks blocks(**engine, guard, device);
  for (size_t i = 0; i < events.size(); ++i) {
    if (watch.ShouldStop(i)) {
      result.stopped = true;
      break;
    }
    Offset offset = Track::kNowhere;
    if (events[i].kind == profiler::EventKind::kAlloc) offset = blocks.Allocate(events[i]);
    if (events[i].kind == profiler::EventKind::kFree) blocks.Free(events[i]);
    if (watch.track == nullptr) continue;
    watch.track->offsets[i] = offset;
    watch.track->reserved[i] = counted.committed();
  }

  result.counters = (*engine)->counters(guard);
  const Counters& c = result.counters;
  result.reserved_peak = counted.peak();
  result.granule = options.granule;
  result.memory_calls = counted.commits();
  result.overlaps = blocks.overlaps();
  result.planned_after_plan = Share(c.planned_requests_after_plan, c.requests_after_plan);
  result.planned_bytes_after_plan = Share(c.planned_bytes_after_plan.count(), c.bytes_after_plan.count());
  result.plans = (*engine)->KnownPlans(guard);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

absl::StatusOr<planner::Solution> SolveByWork(const planner::Problem& problem,
                                              const planner::Budget& budget) {
  planner::Budget by_work = budget;
  by_work.steps = static_cast<int64_t>(budget.seconds * kStepsPerSecond);
  by_work.seconds = budget.seconds * kMostDelay;
  return planner::Solve(problem, by_work);
}

absl::StatusOr<SimulationResult> Simulate(std::span<const profiler::Event> events,
                                          const SimulationOptions& options) {
  const auto granule = static_cast<uint64_t>(options.granule.count());
  if (!std::has_single_bit(granule) || options.granule < kUnit || options.granule > kGiB)
    return absl::InvalidArgumentError(absl::StrCat("memory cannot come in granules of ", granule, " bytes"));
  if (!options.second_run) return Run(events, options, {});
  SimulationOptions of_first = options;
  of_first.watch = {.stop = options.watch.stop};
  const absl::StatusOr<SimulationResult> first = Run(events, of_first, {});
  if (!first.ok()) return first.status();
  absl::StatusOr<std::vector<Sequence::Expected>> plans =
      ToExpect(MakeSavedPlan({}, first->plans, options.plan_seconds));
  if (!plans.ok()) return plans.status();
  return Run(events, options, *std::move(plans));
}

}  // namespace reprise::replay
