#include "replay/engine.h"

#include <algorithm>
#include <bit>
#include <new>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "replay/first_cycle.h"
#include "replay/live_blocks.h"
#include "replay/region_walk.h"
#include "replay/residents.h"

namespace reprise::replay {
namespace {

// Once a plan has been followed for a round, what is free outside of it is given back, in so many at most.
constexpr int kRoundsToGiveBack = 3;
// Most holders of the lock are done at once, before it is slept for.
constexpr int kYields = 100;
// The steady clock's wait is a call that GCC's thread sanitizer does not know: it would take what the lock
// protects for unprotected.
#ifdef __SANITIZE_THREAD__
using WaitClock = std::chrono::system_clock;
#else
using WaitClock = std::chrono::steady_clock;
#endif

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Options& options,
                                                       std::unique_ptr<MemorySource> memory,
                                                       PlanRunner* runner, StreamEvents* events) {
  if (memory->granule() * memory->granule_count() > kLargestRange)
    return absl::InvalidArgumentError("the range is larger than an arena can be");
  std::unique_ptr<Engine> engine(new Engine(options, std::move(memory), runner, events));
  if (!engine->arena_.ok() || (engine->order_ != nullptr && !engine->order_->ok())) {
    return absl::ResourceExhaustedError(
        "the system gives no addresses for the arena's tables: a limit (ulimit -v or -d), or strict "
        "overcommit");
  }
  return engine;
}

Engine::Engine(const Options& options, std::unique_ptr<MemorySource> memory, PlanRunner* runner,
               StreamEvents* events)
    : options_(options),
      memory_(std::move(memory)),
      order_(events == nullptr
                 ? nullptr
                 : std::make_unique<StreamOrder>(
                       Arena::UnitsOf(*memory_),
                       std::countr_zero(static_cast<uint64_t>(memory_->granule() / kUnit)), events)),
      runner_(runner),
      arena_(memory_.get(), options.capacity, order_.get(), options.arena_rules),
      whole_(options.period, options.sequence_rules),
      threads_(options.period, options.sequence_rules) {}

std::optional<Engine::Guard> Engine::TryLockFor(std::chrono::milliseconds patience) {
  for (int i = 0; i < kYields; ++i) {
    if (mutex_.try_lock()) return Guard(&mutex_);
    std::this_thread::yield();
  }
  if (!mutex_.try_lock_until(WaitClock::now() + patience)) return std::nullopt;
  return Guard(&mutex_);
}

Offset Engine::Allocate(const Guard&, const Request& request, BlockInfo* left) {
  Outcome outcome;
  Take(request, outcome);
  if (outcome.block) {
    Describe(request, outcome, Arena::Info(outcome.block));
    return Live(outcome.block, request.alignment);
  }
  ++(request.place ? counters_.passed : counters_.outside);
  if (left != nullptr) {
    Describe(request, outcome, *left);
    left->id = BlockId{static_cast<uint64_t>(counters_.requests)};  // it has no other until it is live
  }
  return kNowhere;
}

inline void Engine::Describe(const Request& request, const Outcome& outcome, BlockInfo& info) {
  info.requested = request.bytes;
  info.token = outcome.token;
  info.stream = request.stream;
  info.wanted_elsewhere = outcome.crosses;
  info.own_token = outcome.own_token;
  info.thread = outcome.thread;
  info.owner = request.owner;
}

std::optional<Offset> Engine::PlaceAgain(const Guard&, const Request& request, const BlockInfo& left) {
  const Arena::Block block = PlaceAnywhere(Leading(left.thread), request, left.token);
  if (!block) return std::nullopt;
  --(request.place ? counters_.passed : counters_.outside);
  Arena::Info(block) = left;
  return Live(block, request.alignment);
}

void Engine::KeepOutside(const Guard&, BlockInfo& left, Bytes alignment) {
  CountLive(left, alignment);
  arena_.CountOutside(left.requested);
}

void Engine::FreeOutside(const Guard&, const BlockInfo& block, Stream stream) {
  CountFreed(block, stream);
  arena_.CountOutside(Bytes(0) - block.requested);
}

void Engine::DropOutside(const Guard&, const BlockInfo& left) {
  const auto request = static_cast<int64_t>(left.id);
  const bool was_token = left.token.count() >= 0 || left.own_token.count() >= 0;
  if (was_token && counters_.plans > 0 && request > counters_.first_planned_request) {
    --counters_.requests_after_plan;
    counters_.bytes_after_plan -= left.requested;
  }
}

bool Engine::Free(const Guard&, Offset offset, Stream stream) {
  const Arena::Block block = arena_.Find(offset);
  if (!block) {
    ++counters_.unknown_frees;
    return false;
  }
  CountFreed(Arena::Info(block), stream);
  arena_.Remove(block, stream);
  return true;
}

std::optional<BlockInfo> Engine::FreeBlock(const Guard& guard, Offset offset, Stream stream) {
  const Arena::Block block = arena_.Find(offset);
  std::optional<BlockInfo> info;
  if (block) info = Arena::Info(block);
  Free(guard, offset, stream);
  return info;
}

std::optional<BlockInfo> Engine::Disown(const Guard&, Offset offset) {
  const Arena::Block block = arena_.Find(offset);
  if (!block) return std::nullopt;
  const BlockInfo info = Arena::Info(block);
  Arena::Info(block).owner = 0;
  return info;
}

std::optional<Engine::Found> Engine::Find(const Guard&, Offset inside) {
  const Arena::Block block = arena_.FindAround(inside);
  if (!block) return std::nullopt;
  return Found{arena_.OffsetOf(block), Arena::Info(block)};
}

Bytes Engine::UsableSize(const Guard&, Offset offset) {
  const Arena::Block block = arena_.Find(offset);
  return block ? arena_.SizeOf(block) : Bytes(0);
}

// A block that is placed and described is live.
inline Offset Engine::Live(Arena::Block block, Bytes alignment) {
  CountLive(Arena::Info(block), alignment);
  return arena_.OffsetOf(block);
}

inline void Engine::CountLive(BlockInfo& info, Bytes alignment) {
  info.id = BlockId{next_id_++};
  counters_.live += info.requested;
  counters_.live_peak = std::max(counters_.live_peak, counters_.live);
  if (info.own_token.count() >= 0) threads_[info.thread].live += info.requested;
  if (sink_ != nullptr) sink_->OnAlloc(info.id, info.requested, alignment, info.stream);
}

inline void Engine::CountFreed(const BlockInfo& info, Stream stream) {
  counters_.live -= info.requested;
  if (info.token.count() >= 0) whole_.OnFree(info.token, stream);
  if (info.own_token.count() >= 0) {
    threads_[info.thread].live -= info.requested;
    threads_[info.thread].sequence->OnFree(info.own_token, stream);
  }
  if (sink_ != nullptr) sink_->OnFree(info.id, stream);
}

inline void Engine::Take(const Request& request, Outcome& outcome) {
  ++counters_.requests;
  if (request.bytes > arena_.main_end() - Offset(0)) return;  // no cycle has room for it
  if (request.bytes >= kSmallBlock) return TakeToken(request, outcome);
  if (!request.place) return;
  const Bytes bytes = std::max(request.bytes, Bytes(1));
  outcome.block = arena_.Place(bytes, request.alignment, Arena::Where::kOutsidePlan, request.stream);
  if (outcome.block) ++counters_.arena;
}

inline void Engine::TakeToken(const Request& request, Outcome& outcome) {
  outcome.thread = threads_.PlaceOf(request.thread, counters_.requests, whole_.now());
  if (threads_.several()) return TakeTokenAmongThreads(request, outcome);
  Sequence::Step step;
  whole_.OnAlloc(request.bytes, request.alignment, request.stream, counters_.live, step);
  outcome.token = step.token;
  Follow(whole_, step, request, outcome);
}

// The device's sequence is led by its own, until each thread's is.
void Engine::TakeTokenAmongThreads(const Request& request, Outcome& outcome) {
  JobThreads::Thread& thread = threads_[outcome.thread];
  Sequence::Step step;
  Sequence::Step own;
  if (!split_) {
    whole_.OnAlloc(request.bytes, request.alignment, request.stream, counters_.live, step);
    outcome.token = step.token;
    threads_.CountToken(thread);
  }
  thread.sequence->OnAlloc(request.bytes, request.alignment, request.stream, thread.live, own);
  outcome.own_token = own.token;
  if (!split_) ConsiderSplitting(thread);
  Follow(Leading(outcome.thread), split_ ? own : step, request, outcome);
}

// Places a token where the leading sequence says.
inline void Engine::Follow(Sequence& leading, const Sequence::Step& step, const Request& request,
                           Outcome& outcome) {
  const bool was_planned = counters_.plans > 0;
  uint32_t slot = !step.at_cut || Adopt(leading, step) ? step.slot : Matcher::kNoSlot;
  if (step.round_began != Matcher::kNoSlot && Rests(leading, step)) slot = Matcher::kNoSlot;
  if (expecting_ && !leading.expecting()) {
    expecting_ = false;
    if (!step.resumed) stays_.clear();
    if (!step.resumed && leading.plan() == nullptr) arena_.SetPlanEnd(Offset(0));
  }
  if (step.resumed) {
    ++counters_.plans_resumed;
    CountPlan(leading);
    BeginFirstCycle(leading, step);
  }
  if (request.place) PlaceInSlot(leading, slot, request, outcome);
  if (was_planned) CountShare(request.bytes, outcome.planned);
  if (step.settled) {
    arena_.SetPlanEnd(PlansEnd(leading));  // its first cycle may have reached higher
    beside_plans_ = BesidePlans().live;    // by now the optimizer's state is there
    arena_.PlanHasSettled();
    rounds_to_give_back_ = kRoundsToGiveBack;
  }
  if (!step.wants_plan) return;
  if (rounds_to_give_back_ > 0) {
    // What the plan covers is served from it by now, and the rest is given back; where the device is behind the
    // host and has not finished with it, in one of the next rounds.
    arena_.GiveBack(/*plan_too=*/split_, kAllOfIt, whole_.plans_begin());
    rounds_to_give_back_ = arena_.kept_busy() ? rounds_to_give_back_ - 1 : 0;
  }
  // This block is among the live ones too, which are told apart by what they were asked for.
  if (outcome.block) Describe(request, outcome, Arena::Info(outcome.block));
  ConsiderPlanning(leading);
}

inline void Engine::CountShare(Bytes bytes, bool planned) {
  ++counters_.requests_after_plan;
  counters_.bytes_after_plan += bytes;
  if (!planned) return;
  ++counters_.planned_requests_after_plan;
  counters_.planned_bytes_after_plan += bytes;
}

// A helper that repeats is not what the device does.
void Engine::ConsiderSplitting(const JobThreads::Thread& thread) {
  if (!thread.Repeats() || whole_.promising() || !threads_.MostRepeats()) return;
  split_ = true;
  for (const JobThreads::Thread& each : threads_) ConsiderPlanning(*each.sequence);
}

inline void Engine::PlaceInSlot(Sequence& sequence, uint32_t slot, const Request& request, Outcome& outcome) {
  if (slot != Matcher::kNoSlot && sequence.plan()->slots[slot].planned()) {
    const ServingPlan::Slot& planned = sequence.plan()->slots[slot];
    const int64_t alignment = request.alignment.count();
    if (alignment <= 1 || (planned.offset.count() & (alignment - 1)) == 0) {
      outcome.block = arena_.PlaceAt(planned.offset, request.bytes, request.stream);
    }
    if (outcome.block) {
      ++counters_.planned;
      outcome.planned = true;
      outcome.crosses = planned.crosses;
      return;
    }
    ++counters_.conflicts;
    const Arena::Block taker = split_ ? Arena::Block() : arena_.FindAround(planned.offset);
    if (taker) sequence.OnTaken(slot, request.bytes, Arena::Info(taker).token, arena_.OffsetOf(taker));
    sequence.OnConflict(request.bytes);
  }
  outcome.block = PlaceAnywhere(sequence, request, outcome.token);
}

// In step, a stray block must not take a place that a coming slot needs; lost, nothing is known about coming slots, and
// before an entry none is taken. Other threads' plans are never in the way of one that is lost. Before a plan of an earlier
// run is followed nothing may settle in its range; where it is known what stays, the rest may lie there meanwhile: beside
// it, it would leave what stays scattered over as many granules as all of it took. What has cost more than it brought is kept
// no longer.
Arena::Block Engine::PlaceAnywhere(Sequence& sequence, const Request& request, Tick token) {
  const bool careful = split_ ? counters_.plans > 0
                              : (sequence.KeepsPlaces(request.stream) && !arena_.PlanYields()) ||
                                    (stays_.empty() ? sequence.expecting() : IsToStay(token, request.bytes));
  Arena::Block block =
      arena_.Place(request.bytes, request.alignment,
                   careful ? Arena::Where::kOutsidePlan : Arena::Where::kAnywhere, request.stream);
  if (!block && careful) {
    block = arena_.Place(request.bytes, request.alignment, Arena::Where::kAnywhere, request.stream);
  }
  if (block) ++counters_.arena;
  return block;
}

// Whether a block is known to stay. Where the job has begun otherwise than it did then, the plans that it has not followed
// are forgotten: what stays of its first step would lie in their places, or all of it had to be kept out of their range.
bool Engine::IsToStay(Tick token, Bytes bytes) {
  if (token > stays_.back().token) return false;
  const auto then = std::ranges::lower_bound(stays_, token, {}, &StayingBlock::token);
  if (then->token != token) return false;
  if (then->bytes == bytes) return true;
  stays_.clear();
  expecting_ = false;
  whole_.ForgetExpected();
  arena_.SetPlanEnd(whole_.plans_end());
  return false;
}

// False: there is no room for it.
bool Engine::Adopt(Sequence& sequence, const Sequence::Step& step) {
  if (split_ && !MoveToOwnRegion(sequence, sequence.candidate())) {
    sequence.Drop();
    return false;
  }
  const CycleAt cycle = {sequence.candidate().cycle, step.token - step.slot, whole_.now()};
  if (split_) {
    sequence.Adopt(sequence.candidate_from());
  } else {
    const Tick from = BeginOf(arena_, cycle, sequence.candidate_from());
    sequence.Adopt(from, WhatStays(arena_, cycle, from));
  }
  arena_.SetPlanEnd(PlansEnd(sequence));
  CountPlan(sequence);
  BeginFirstCycle(sequence, step);
  if (options_.learnt) options_.learnt(KnownPlans());
  return true;
}

Offset Engine::PlansEnd(const Sequence& sequence) const {
  Offset end = sequence.plans_end();
  if (split_) {
    for (const JobThreads::Thread& thread : threads_) end = std::max(end, thread.sequence->plans_end());
  }
  return end;
}

// Whether a plan of which a round has just begun finds so much in its way that it is not followed; without memory to see
// that, it is.
bool Engine::Rests(Sequence& sequence, const Sequence::Step& step) const try {
  if (split_) return false;  // then each has a region of its own
  const CycleAt cycle = {sequence.plan()->cycle, step.token - step.round_began, whole_.now()};
  const InTheWay found = FindInTheWay(sequence, arena_, cycle);
  return sequence.Rest(found.outliving, found.others);
} catch (const std::bad_alloc&) {
  return false;
}

// Of a plan that has just come into use: around all that is live, each block for as long as the cycle keeps it.
void Engine::BeginFirstCycle(Sequence& sequence, const Sequence::Step& step) {
  if (split_ || !options_.sequence_rules.first_cycle) return;
  const ServingPlan& plan = *sequence.plan();
  const CycleAt cycle = {plan.cycle, step.token - step.slot, whole_.now()};
  const std::vector<LiveBlock> live = BlocksFor(sequence, arena_, cycle);
  std::optional<std::vector<ServingPlan::Slot>> first =
      LayFirstCycle(plan, step.slot, ResidentsOf(plan, step.slot, step.token, live), options_.solve);
  if (!first.has_value()) return;
  arena_.SetPlanEnd(std::max(arena_.plan_end(), EndOf(plan.cycle, *first)));
  sequence.BeginWith(std::move(*first));
}

void Engine::CountPlan(const Sequence& sequence) {
  if (counters_.plans++ == 0) {
    counters_.first_planned_iteration = sequence.iterations() + 1;
    counters_.first_planned_request = counters_.requests;
  }
  plans_without_stream_ |= std::ranges::any_of(sequence.plan()->lasting(), [](const ServingPlan::Slot& slot) {
    return slot.planned() && IsEveryStream(slot.stream);
  });
  arena_.SetForLag(ForLag());
  const Beside beside = BesidePlans();
  counters_.plan_needs = NeedOfPlans(beside);
  beside_plans_ = beside.live;
  if (sink_ != nullptr) sink_->OnPlanAdopted();
}

Bytes Engine::ForLag() const {
  Bytes sum;
  ForEachSequence([&](const Sequence& sequence) {
    if (split_ == (&sequence == &whole_)) return;  // led by its threads' sequences or by its own
    Bytes most;
    sequence.ForEachPlan([&](const ServingPlan& plan) { most = std::max(most, plan.for_lag); });
    sum += most;
  });
  return sum;
}

Engine::Beside Engine::BesidePlans() const {
  std::vector<Region> covered;
  if (!split_) covered.emplace_back(whole_.plans_begin(), arena_.plan_end());
  for (const JobThreads::Thread& thread : threads_) {
    const ServingPlan* const plan = thread.sequence->plan();
    if (split_ && plan != nullptr) covered.emplace_back(plan->begin, plan->end);
  }
  Beside beside;
  for (const auto& [begin, end] : covered) beside.covered += RoundUp(end - begin, memory_->granule());
  beside.live = LiveBeside(arena_, std::move(covered));
  return beside;
}

Bytes Engine::NeedOfPlans(const Beside& beside) const {
  const Bytes granule = memory_->granule();
  Bytes small;
  arena_.ForEachSmallLive([&](Offset, Bytes bytes, const BlockInfo&) { small += bytes; });
  return beside.covered + RoundUp(beside.live, granule) + RoundUp(small, granule);
}

absl::Status Engine::Expect(const Guard&, std::vector<Sequence::Expected> plans) {
  for (const Sequence::Expected& expected : plans) {
    if (expected.plan.slots.size() < static_cast<size_t>(profiler::PeriodFinder::kMinPeriod))
      return absl::OutOfRangeError("a cycle is shorter than any that is planned");
    if (expected.plan.end > arena_.main_end()) return absl::OutOfRangeError("it is larger than the arena");
  }
  for (Sequence::Expected& expected : plans) {
    stays_.insert(stays_.end(), expected.stays.begin(), expected.stays.end());
    expected.plan.most_to_be_had = arena_.most_to_be_had();
    whole_.Expect(std::move(expected));
  }
  std::ranges::sort(stays_, {}, &StayingBlock::token);
  expecting_ = whole_.expecting();
  arena_.SetPlanEnd(whole_.plans_end());
  return absl::OkStatus();
}

std::vector<Sequence::Known> Engine::KnownPlans() const {
  return split_ ? std::vector<Sequence::Known>() : whole_.KnownPlans();
}

// The lowest where no other thread's plan is and nothing that is live: there are many addresses, but an end.
bool Engine::MoveToOwnRegion(const Sequence& sequence, ServingPlan& plan) const {
  std::vector<Region> others;
  for (const JobThreads::Thread& other : threads_) {
    if (other.sequence.get() == &sequence) continue;
    other.sequence->ForEachPlan([&](const ServingPlan& each) { others.emplace_back(each.begin, each.end); });
  }
  const Bytes height = plan.end - Offset(0);
  const std::optional<Offset> base =
      LowestFree(arena_, std::move(others), height, StepFor(plan, memory_->granule()));
  if (!base.has_value()) return false;
  MoveTo(*base, plan);
  return true;
}

// The most that a plan of it and what it lies around may take: not what other threads' plans do, around which it does not lie.
Bytes Engine::MostFor(const Sequence& sequence) const {
  Bytes most = arena_.most_to_be_had();
  if (!split_ || most == kAllOfIt) return most;
  most -= beside_plans_;
  for (const JobThreads::Thread& other : threads_) {
    const ServingPlan* const plan = other.sequence->plan();
    if (other.sequence.get() != &sequence && plan != nullptr)
      most -= RoundUp(plan->end - plan->begin, memory_->granule());
  }
  return most;
}

// Asks for a plan when a period has been found that the plan in use does not serve; without memory for that, later.
void Engine::ConsiderPlanning(Sequence& sequence) try {
  // Less than was known of when the plan was asked for.
  if (sequence.plan() != nullptr && MostFor(sequence) < sequence.plan()->most_to_be_had) sequence.LayAgain();
  const auto iteration = options_.plan ? sequence.IterationToPlan() : std::nullopt;
  if (!iteration.has_value()) return;
  // A thread's plan comes to lie where nothing is in its way.
  const CycleAt cycle = {iteration->slots, iteration->origin, whole_.now()};
  const std::vector<Obstacle> obstacles = split_ ? std::vector<Obstacle>() : FindObstacles(arena_, cycle);
  auto request = std::make_shared<PlanRequest>(MakeRequest(*iteration, obstacles, sequence.OtherPlans()));
  request->keeps_lag = options_.sequence_rules.lag;
  request->may_lie_beside = request->may_lie_beside && options_.sequence_rules.beside;
  request->most_to_be_had = MostFor(sequence);
  request->granule = memory_->granule();
  request->addresses = arena_.main_end();
  if (!split_) KeepInPlace(arena_, iteration->period, whole_.now(), *request);
  if (!split_ && sequence.plan() != nullptr) KeepPlaces(*sequence.plan(), *request);
  runner_->Run([request, candidate = sequence.BeginPlanning(), seconds = options_.plan_seconds,
                solve = options_.solve] { Plan(*request, seconds, *candidate, solve); });
} catch (const std::bad_alloc&) {
  if (sequence.period().has_value()) sequence.Drop();
}

Counters Engine::counters(const Guard&) const {
  Counters result = counters_;
  bool alone = false;
  result.threads = split_ ? static_cast<int64_t>(threads_.size()) : 0;
  ForEachSequence([&](const Sequence& sequence) {
    const Sequence::Counters own = sequence.counters();
    result.mismatches += own.mismatches;
    result.times_lost += own.times_lost;
    result.withheld += own.withheld;
    result.plans_failed += own.plans_failed;
    result.plans_dropped += own.plans_dropped;
    result.plans_renewed += own.plans_renewed;
    result.plan_switches += own.plan_switches;
    const bool of_device = &sequence == &whole_;
    if (of_device || split_) result.iterations = std::max(result.iterations, sequence.iterations());
    if (of_device == split_) return;  // led by its threads' sequences or by its own
    if (sequence.period().has_value()) result.period = std::max(result.period, sequence.period()->length);
    if (sequence.plan() == nullptr) return;
    result.slab += sequence.plan()->slab;
    result.lower_bound += sequence.plan()->lower_bound;
    alone = alone || sequence.plan()->alone;
  });
  // As if it had been solved here: around what is live beside it.
  if (alone) result.slab += beside_plans_;
  if (alone) result.lower_bound += beside_plans_;
  if (order_ != nullptr) {
    result.streams = order_->streams();
    result.stream_waits = order_->counters().waits;
    result.stream_events = order_->counters().events;
    result.host_waits = order_->counters().host_waits;
  }
  result.held_for_streams = arena_.for_streams();
  result.granules_moved = arena_.granules_moved();
  result.placed = arena_.placed();
  result.reserved = arena_.held();
  result.reserved_peak = arena_.held_peak();
  return result;
}

}  // namespace reprise::replay
