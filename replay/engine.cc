#include "replay/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace reprise::replay {
namespace {

// A plan whose matched share stays below this gives way to a longer period. Design, section 4.
constexpr double kGoodShare = 0.98;
// How many allocations are fed to a shadow matcher at once so that it is in step when the cut comes.
constexpr int64_t kShadowLead = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(Options options, std::unique_ptr<MemorySource> memory,
                                                       PlanRunner* runner, StreamEvents* events) {
  std::unique_ptr<Engine> engine(new Engine(options, std::move(memory), runner, events));
  if (!engine->arena_.ok() || (engine->order_ != nullptr && !engine->order_->ok())) {
    return absl::ResourceExhaustedError("no address space for the arena's tables");
  }
  return engine;
}

Engine::Engine(Options options, std::unique_ptr<MemorySource> memory, PlanRunner* runner,
               StreamEvents* events)
    : options_(options),
      memory_(std::move(memory)),
      order_(events == nullptr ? nullptr : std::make_unique<StreamOrder>(Arena::UnitsOf(*memory_), events)),
      runner_(runner),
      arena_(memory_.get(), options.capacity, order_.get()),
      finder_(options.period) {}

std::optional<Engine::Guard> Engine::TryLockFor(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (mutex_.try_lock()) return Guard(&mutex_);
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::yield();
  }
}

std::optional<Offset> Engine::Allocate(const Guard&, const Request& request, BlockInfo* left) {
  const Outcome outcome = Take(request);
  const BlockInfo info = {.requested = request.bytes,
                          .token = outcome.token,
                          .id = BlockId{next_id_++},
                          .stream = request.stream,
                          .wanted_elsewhere = outcome.crosses,
                          .owner = request.owner};
  if (outcome.block) return Live(outcome.block, info, request.alignment);
  ++(request.place ? counters_.passed : counters_.outside);
  if (left != nullptr) *left = info;
  return std::nullopt;
}

std::optional<Offset> Engine::PlaceAgain(const Guard&, const BlockInfo& left, Bytes alignment) {
  const Arena::Block block = PlaceAnywhere({left.requested, alignment, left.stream});
  if (!block) return std::nullopt;
  --counters_.passed;
  return Live(block, left, alignment);
}

void Engine::KeepOutside(const Guard&, const BlockInfo& block, Bytes alignment) {
  CountLive(block, alignment);
}

void Engine::FreeOutside(const Guard&, const BlockInfo& block, Stream stream) { CountFreed(block, stream); }

void Engine::DropOutside(const Guard&, const BlockInfo& left) {
  if (left.token.count() >= 0) history_.OnFree(left.token, left.stream);
}

std::optional<BlockInfo> Engine::FreeBlock(const Guard&, Offset offset, Stream stream) {
  const Arena::Block block = arena_.Find(offset);
  if (!block) {
    ++counters_.unknown_frees;
    return std::nullopt;
  }
  const BlockInfo info = Arena::Info(block);
  CountFreed(info, stream);
  counters_.placed -= arena_.SizeOf(block);
  arena_.Remove(block, stream);
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

Offset Engine::Live(Arena::Block block, const BlockInfo& info, Bytes alignment) {
  Arena::Info(block) = info;
  counters_.placed += arena_.SizeOf(block);
  CountLive(info, alignment);
  return arena_.OffsetOf(block);
}

void Engine::CountLive(const BlockInfo& info, Bytes alignment) {
  counters_.live += info.requested;
  counters_.live_peak = std::max(counters_.live_peak, counters_.live);
  if (sink_ != nullptr) sink_->OnAlloc(info.id, info.requested, alignment, info.stream);
}

void Engine::CountFreed(const BlockInfo& info, Stream stream) {
  counters_.live -= info.requested;
  if (info.token.count() >= 0) history_.OnFree(info.token, stream);
  if (sink_ != nullptr) sink_->OnFree(info.id, stream);
}

Engine::Outcome Engine::Take(const Request& request) {
  ++counters_.requests;
  if (request.bytes >= kSmallBlock) return TakeToken(request);
  if (!request.place) return {};
  const Bytes bytes = std::max(request.bytes, Bytes(1));
  const Outcome outcome = {
      arena_.Place(bytes, request.alignment, Arena::Where::kOutsidePlan, request.stream)};
  if (outcome.block) ++counters_.arena;
  return outcome;
}

Engine::Outcome Engine::TakeToken(const Request& request) {
  const bool found = finder_.OnAlloc(request.bytes, request.stream, counters_.live);
  Outcome outcome;
  outcome.token = history_.OnAlloc(request.bytes, request.alignment, request.stream, counters_.live);
  history_.Reserve(finder_.capacity());
  const bool adopting = PollCandidate() && ShadowStep(request.bytes, request.stream);
  const bool counted = counters_.plans > 0 && !(adopting && counters_.plans == 1);

  uint32_t slot = Matcher::kNoSlot;
  if (plan_ != nullptr) {
    slot = adopting ? 0 : plan_->matcher->Step(request.bytes, request.stream);
    CountShare(slot != Matcher::kNoSlot);
  }
  const int64_t planned_before = counters_.planned;
  if (request.place) outcome.block = PlaceInSlot(slot, request, &outcome.crosses);
  if (counted) {
    const bool planned = counters_.planned > planned_before;
    ++counters_.requests_after_plan;
    counters_.bytes_after_plan += request.bytes;
    if (planned) ++counters_.planned_requests_after_plan;
    if (planned) counters_.planned_bytes_after_plan += request.bytes;
  }
  if (found || outcome.token == ask_again_at_) ConsiderPlanning();
  return outcome;
}

Arena::Block Engine::PlaceInSlot(uint32_t slot, const Request& request, bool* crosses) {
  if (slot != Matcher::kNoSlot && plan_->plan.slots[slot].planned()) {
    const ServingPlan::Slot& planned = plan_->plan.slots[slot];
    const Bytes alignment = request.alignment;
    if (alignment.count() <= 1 || planned.offset.count() % alignment.count() == 0) {
      if (const Arena::Block block = arena_.PlaceAt(planned.offset, request.bytes, request.stream)) {
        ++counters_.planned;
        *crosses = planned.crosses;
        return block;
      }
    }
    ++counters_.conflicts;
  }
  return PlaceAnywhere(request);
}

// In step, a stray block must not take a place that a coming slot needs; lost, nothing is known about coming
// slots.
Arena::Block Engine::PlaceAnywhere(const Request& request) {
  const bool careful = plan_ != nullptr && plan_->matcher->InStep(request.stream);
  Arena::Block block =
      arena_.Place(request.bytes, request.alignment,
                   careful ? Arena::Where::kOutsidePlan : Arena::Where::kAnywhere, request.stream);
  if (!block && careful) {
    block = arena_.Place(request.bytes, request.alignment, Arena::Where::kAnywhere, request.stream);
  }
  if (block) ++counters_.arena;
  return block;
}

// True when a candidate is being followed. Starts its shadow matcher when it has just been solved, with the
// last allocations before this one, so that it is in step at once.
bool Engine::PollCandidate() {
  if (candidate_ == nullptr || candidate_in_shadow_) return candidate_ != nullptr;
  if (!candidate_->ready.load(std::memory_order_acquire)) return false;
  if (!candidate_->status.ok()) {
    ++counters_.plans_failed;
    candidate_.reset();
    return false;
  }
  candidate_in_shadow_ = true;
  const Tick now = history_.now();  // this allocation is in the history already, and not to be fed
  for (Tick t = std::max(history_.oldest(), now - 1 - kShadowLead); t < now - 1; t = t + 1) {
    candidate_->matcher->Step(history_.at(t).bytes, history_.at(t).stream);
  }
  return true;
}

// Steps the shadow matcher; adopts, and returns true, when this allocation is the cut and the matcher in
// step.
bool Engine::ShadowStep(Bytes bytes, Stream stream) {
  const bool at_cut = candidate_->matcher->AtCut();
  if (candidate_->matcher->Step(bytes, stream) != 0 || !at_cut) return false;
  Adopt();
  return true;
}

void Engine::Adopt() {
  if (plan_ != nullptr) {
    counters_.mismatches += plan_->matcher->mismatches();
    counters_.times_lost += plan_->matcher->times_lost();
  }
  plan_ = std::make_unique<Active>();
  plan_->plan = std::move(candidate_->plan);
  plan_->matcher = std::move(candidate_->matcher);
  plan_->period = candidate_period_;
  candidate_.reset();
  arena_.SetPlanEnd(plan_->plan.end);
  window_tokens_ = 0;
  window_matched_ = 0;
  matched_share_ = 1.0;
  if (counters_.plans++ == 0) {
    counters_.first_planned_iteration = finder_.iterations() + 1;
    counters_.first_planned_request = counters_.requests;
  }
  if (sink_ != nullptr) sink_->OnPlanAdopted();
}

void Engine::CountShare(bool matched) {
  ++window_tokens_;
  if (matched) ++window_matched_;
  if (window_tokens_ < plan_->period) return;
  matched_share_ = static_cast<double>(window_matched_) / static_cast<double>(window_tokens_);
  window_tokens_ = 0;
  window_matched_ = 0;
  if (!std::exchange(plan_->settled, true)) arena_.GiveBack(/*plan_too=*/false);
  ConsiderPlanning();
}

// Asks for a plan when a period has been found that the plan in use does not serve.
void Engine::ConsiderPlanning() {
  const auto& period = finder_.confirmed();
  if (!options_.plan || !period.has_value()) return;
  if (plan_ != nullptr && (period->length == plan_->period || matched_share_ >= kGoodShare)) return;
  if (candidate_ != nullptr && candidate_period_ == period->length) return;
  if (candidate_ != nullptr) {
    candidate_->cancel = true;
    ++counters_.plans_dropped;
  }
  RequestPlan();
}

void Engine::CancelPlanning(const Guard&) {
  if (candidate_ != nullptr) candidate_->cancel = true;
}

void Engine::RequestPlan() {
  profiler::Iteration iteration = profiler::ExtractIteration(history_, *finder_.confirmed());
  if (iteration.slots.empty()) return;  // longer than the history
  // Some lifetimes may not have ended in any round seen; one more round settles them. The cut is far enough
  // away.
  const profiler::Period& period = *finder_.confirmed();
  if (iteration.unsettled > 0 && history_.now() < period.found_at + period.length) {
    ask_again_at_ = history_.now() + std::max<int64_t>(1, period.length / 8);
    return;
  }
  const std::vector<Obstacle> obstacles = FindObstacles(iteration);
  auto request = std::make_shared<PlanRequest>(MakeRequest(std::move(iteration), obstacles));
  candidate_ = std::make_shared<Candidate>();
  candidate_period_ = finder_.confirmed()->length;
  candidate_in_shadow_ = false;
  runner_->Run([request, candidate = candidate_, seconds = options_.plan_seconds] {
    Plan(*request, seconds, *candidate);
  });
}

// The live blocks that the cycle will not free by itself: all but those that are a slot's latest instance and
// not yet older than the slot's lifetime. (Size and position alone are not enough: an optimizer's state,
// allocated among the first gradients, looks like them.)
std::vector<Obstacle> Engine::FindObstacles(const profiler::Iteration& iteration) const {
  std::vector<Obstacle> obstacles;
  const Tick now = history_.now();
  arena_.ForEachLive([&](Offset offset, Bytes bytes, const BlockInfo& info) {
    const int64_t turn = (info.token - iteration.origin) % iteration.period;
    const profiler::Slot& slot = iteration.slots[turn < 0 ? turn + iteration.period : turn];
    const bool of_cycle = !slot.persistent && slot.bytes == info.requested && slot.stream == info.stream &&
                          now - info.token <= slot.length;
    if (!of_cycle) obstacles.push_back({offset, bytes});
  });
  return obstacles;
}

Counters Engine::counters(const Guard&) const {
  Counters result = counters_;
  result.iterations = finder_.iterations();
  if (finder_.confirmed().has_value()) result.period = finder_.confirmed()->length;
  if (plan_ != nullptr) {
    result.slab = plan_->plan.slab;
    result.lower_bound = plan_->plan.lower_bound;
    result.mismatches += plan_->matcher->mismatches();
    result.times_lost += plan_->matcher->times_lost();
  }
  if (order_ != nullptr) {
    result.stream_waits = order_->counters().waits;
    result.stream_events = order_->counters().events;
  }
  result.granules_moved = arena_.granules_moved();
  result.reserved = arena_.committed();
  result.reserved_peak = arena_.committed_peak();
  return result;
}

}  // namespace reprise::replay
