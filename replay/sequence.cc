#include "replay/sequence.h"

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/exact_period.h"

namespace reprise::replay {
namespace {

// A round is looked through at most so many times while it takes place, however short the plan in use is that
// asks at each of its own.
constexpr int64_t kLooksAPeriod = 8;
// Plans kept beside the one in use. Each costs a comparison an allocation and some hundred bytes a slot.
constexpr size_t kMostWaiting = 3;
// Rounds to wait before planning again, at most.
constexpr int64_t kMostReplanRounds = 64;
// A job's start may take this part longer than in the run that its plan is of: threads that compile are never
// done after the same number of allocations.
constexpr int64_t kLongerStartParts = 8;

}  // namespace

void Sequence::OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live, Step& step) {
  step.wants_plan = finder_.OnAlloc(bytes, stream, live);
  step.token = history_.OnAlloc(bytes, alignment, stream, live);
  history_.Reserve(finder_.capacity());
  last_stream_ = stream;
  if (pending_.exists()) FollowPending(bytes, stream, step);
  if (!step.at_cut && (active_ != nullptr || !waiting_.empty())) {
    if (active_ != nullptr) step.slot = active_->matcher->Step(bytes, stream);
    if (!waiting_.empty()) FollowWaiting(bytes, stream, step);
    if (active_ != nullptr) {
      CountShare(bytes, stream, step);
      if (rules_.rest && step.slot != Matcher::kNoSlot && active_->plan.slots[step.slot].entry &&
          active_->matcher->Sure(stream) && active_->ShouldLook(step.token, step.slot, live)) {
        step.round_began = step.slot;
      }
      if (step.slot == Matcher::kNoSlot || active_->astray > Bytes(0) || active_->rests || finder_.in_doubt())
        FollowFromEntry(bytes, stream, step);
    }
  }
  if (step.token == ask_again_at_) step.wants_plan = true;
}

void Sequence::FollowPending(Bytes bytes, Stream stream, Step& step) {
  if (pending_.failed()) {
    Drop();
    return;
  }
  uint32_t cut = Matcher::kNoSlot;
  step.at_cut = pending_.AtCut(bytes, stream, history_, cut) && !IsDoubted(pending_.cycle());
  if (step.at_cut) step.slot = cut;
}

bool Sequence::Has(uint64_t fingerprint) const {
  const auto is_it = [&](const auto& plan) { return plan->cycle.fingerprint == fingerprint; };
  return (active_ != nullptr && is_it(active_)) || std::ranges::any_of(waiting_, is_it);
}

// Counts what a plan met with while it was in use.
void Sequence::Account(const FollowedPlan& used, Counters& counters) {
  counters.mismatches += used.mismatches();
  counters.times_lost += used.times_lost();
}

// The plan in use goes out of use.
void Sequence::Leave(FollowedPlan& used) {
  Account(used, counters_);
  used.EndFirstCycle();
}

void Sequence::Adopt(Tick from, std::vector<StayingBlock> stays) {
  if (active_ != nullptr) {
    Leave(*active_);
    waiting_.push_back(std::move(active_));
  }
  active_ = pending_.Take();
  std::erase_if(waiting_, [&](const auto& other) {
    return other->cycle.fingerprint == active_->cycle.fingerprint ||
           other->cycle.fingerprint == active_->cycle.replaces;
  });
  if (waiting_.size() > (rules_.plan_set ? kMostWaiting : 0)) {
    waiting_.erase(std::min_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
      return a->last_used < b->last_used;
    }));
  }
  active_->cycle.from = from;
  active_->stays = std::move(stays);
  active_->BeginUse();
  active_->Count(history_.now() - 1, 0, Bytes(0), last_stream_);  // the present allocation, which is the cut
  failed_length_ = 0;
  if (active_->cycle.reason != PlannedCycle::Reason::kFound) ++counters_.plans_renewed;
}

void Sequence::Expect(Expected expected) {
  auto known = std::make_unique<FollowedPlan>();
  known->plan = std::move(expected.plan);
  known->matcher = std::make_unique<Matcher>(known->plan);
  const int64_t round = static_cast<int64_t>(known->plan.slots.size()) / RoundsOf(known->plan);
  known->cycle = {
      .period = {.length = round, .found_at = Tick(-1)},
      .fingerprint = FingerprintOf(std::span(known->plan.cycle).first(static_cast<size_t>(round))),
      .from = expected.from,
      .origin = expected.cut};
  known->stays = std::move(expected.stays);
  known->of_earlier_run = true;
  waiting_.push_back(std::move(known));
}

void Sequence::ForgetExpected() {
  std::erase_if(waiting_, [](const auto& known) { return known->of_earlier_run; });
}

std::vector<Sequence::Known> Sequence::KnownPlans() const {
  std::vector<Known> plans;
  const auto add = [&](const FollowedPlan& known) {
    const Tick from = known.cycle.from;
    const uint32_t to_cut = SlotByNumber(known.plan, from, known.cycle.origin);  // the rest of a round
    plans.push_back({known.plan.cycle, from, from + to_cut, known.stays});
  };
  if (active_ != nullptr) add(*active_);
  for (const auto& other : waiting_) add(*other);
  return plans;
}

bool Sequence::Stays(Tick token) const {
  return active_ != nullptr && std::ranges::binary_search(active_->stays, token, {}, &StayingBlock::token);
}

uint32_t Sequence::SlotInStart(Tick token) const {
  return active_ == nullptr ? Matcher::kNoSlot : active_->SlotInStart(token, history_);
}

std::vector<OtherPlan> Sequence::OtherPlans() const {
  std::vector<OtherPlan> others;
  if (!rules_.turns) return others;
  if (active_ != nullptr) others.push_back({&active_->plan, active_->last_used});
  for (const auto& other : waiting_) others.push_back({&other->plan, other->last_used});
  return others;
}

Offset Sequence::plans_begin() const {
  Offset begin = plans_end();
  ForEachPlan([&](const ServingPlan& plan) { begin = std::min(begin, plan.begin); });
  return begin;
}

Offset Sequence::plans_end() const {
  Offset end;
  ForEachPlan([&](const ServingPlan& plan) { end = std::max(end, plan.end); });
  return end;
}

// The matchers of the others look on. One of them takes over when the job has left the plan in use for it, or
// when it is the longer: what is inside a cycle is in step with it all the time. What the longer one has live has to lie in
// its places then, as nothing does any longer in those of the plan that is left.
void Sequence::FollowWaiting(Bytes bytes, Stream stream, Step& step) {
  if (active_ == nullptr) {
    std::erase_if(waiting_, [&](const auto& known) {
      const Tick from = known->cycle.from;
      return step.token > from + std::max(known->cycle.period.length, from.count() / kLongerStartParts);
    });
  }
  const bool lost = active_ == nullptr || !active_->matcher->InStep(stream);
  std::unique_ptr<FollowedPlan>* next = nullptr;
  for (std::unique_ptr<FollowedPlan>& other : waiting_) {
    if (other->of_earlier_run && step.token == other->cycle.from)
      other->matcher->StartAt(SlotByNumber(other->plan, other->cycle.origin, step.token));
    const uint32_t slot = other->matcher->Step(bytes, stream);
    CountAstray(*other, /*in_use=*/false, slot, bytes, stream);
    if (active_ == nullptr && slot != Matcher::kNoSlot) other->NoteInStart(step.token, slot);
    const bool wanted = lost || (IsLonger(other->cycle.period, active_->cycle.period) && !other->IsAstray());
    if (next != nullptr || !wanted || !other->matcher->Sure(stream)) continue;  // which has a slot
    if (other->of_earlier_run && step.token < other->cycle.from) continue;
    next = &other;
    step.slot = slot;
  }
  if (next == nullptr) return;
  if (active_ == nullptr) {
    active_ = std::move(*next);
    waiting_.erase(waiting_.begin() + (next - waiting_.data()));
    fingerprint_ = active_->cycle.fingerprint;
  } else {
    Leave(*active_);
    std::swap(active_, *next);
    ++counters_.plan_switches;
  }
  step.resumed = active_->BeginUse();
}

bool Sequence::promising() const {
  const Tick now = history_.now();
  if (pending_.exists()) return Awaits();
  if (active_ != nullptr) return active_->useful();
  const std::optional<profiler::Period>& period = finder_.confirmed();
  return period.has_value() && now < period->found_at + PendingPlan::kRoundsToAdopt * period->length;
}

// Tries again later, each time after twice as long.
void Sequence::Drop() {
  pending_.Forget();
  ++counters_.plans_failed;
  failed_length_ = finder_.confirmed()->length;
  PutOffPlanning(failed_length_);
  AskAgain(replan_from_ - history_.now().count());
}

void Sequence::PutOffPlanning(int64_t round) {
  replan_from_ = history_.now().count() + replan_rounds_ * std::max(round, FollowedPlan::kShortRound);
  replan_rounds_ = std::min(2 * replan_rounds_, kMostReplanRounds);
}

void Sequence::CountShare(Bytes bytes, Stream stream, Step& step) {
  if (!active_->Count(step.token, step.slot, bytes, stream)) return;
  if (active_->proven()) replan_rounds_ = 1;
  step.settled = !std::exchange(active_->settled, true);
  active_->EndFirstCycle();
  step.wants_plan = true;
}

// Then the job does not do what was planned.
void Sequence::OnTaken(uint32_t slot, Bytes bytes, Tick since, Offset offset) {
  if (!rules_.rest || active_->IsAstray() || !active_->Outstays(slot, since, offset, history_.now())) return;
  active_->astray += bytes;
  if (active_->IsMuchInTheWay(active_->astray)) DoubtPeriod();
}

// Judged anew, where the plan in use is of it.
void Sequence::DoubtPeriod() {
  const std::optional<profiler::Period>& period = finder_.confirmed();
  if (!period.has_value() || finder_.in_doubt() || !active_->cycle.IsOf(*period)) return;
  finder_.Doubt();
  active_->doubted = true;
}

// What comes later than in a plan's first rounds is something else than a job's state, such as sequences of another length, and
// seldom there for good; nor is it what is left of much more, which is another job's. Plans that take turns find what the others
// have at their ends, for which there are other rules.
bool Sequence::Rest(Bytes outliving, Bytes others) {
  if (active_->IsMuchInTheWay(outliving)) DoubtPeriod();
  const bool young = active_->rounds_begun <= FollowedPlan::kRoundsToRest;
  const bool came_to_stay = young && others * 4 >= active_->unexpected_before;
  if (waiting_.empty() && (came_to_stay || active_->rests)) outliving += others;
  if (!active_->IsMuchInTheWay(outliving)) active_->rounds_rested = 0;
  active_->rests = active_->IsMuchInTheWay(outliving) && active_->rounds_rested < FollowedPlan::kRoundsToRest;
  if (active_->rests) ++active_->rounds_rested;
  return active_->IsAstray();
}

void Sequence::CountAstray(FollowedPlan& plan, bool in_use, uint32_t slot, Bytes bytes, Stream stream) const {
  if (IsDoubted(plan.cycle) || (in_use && Outgrown())) {
    plan.Doubt();
  } else if (rules_.entries) {
    plan.CountAstray(in_use, slot, bytes, stream);
  }
}

// A plan of which much lies elsewhere is followed again from an entry on; its matcher goes on meanwhile.
void Sequence::FollowFromEntry(Bytes bytes, Stream stream, Step& step) {
  CountAstray(*active_, /*in_use=*/true, step.slot, bytes, stream);
  if (step.slot == Matcher::kNoSlot || !active_->IsAstray()) return;
  ++counters_.withheld;
  step.slot = Matcher::kNoSlot;
}

// Whether it is of a period that is judged anew: what is done in the meantime is not what was planned.
bool Sequence::IsDoubted(const PlannedCycle& cycle) const {
  return finder_.in_doubt() && cycle.IsOf(*finder_.confirmed());
}

// Whether the plan in use turned out to be of a micro-batch whose step has been found.
bool Sequence::Outgrown() const {
  return active_ != nullptr && active_->doubted && IsLonger(*finder_.confirmed(), active_->cycle.period);
}

std::optional<profiler::Iteration> Sequence::IterationToPlan() {
  std::optional<profiler::Iteration> iteration = NewIteration();
  if (!iteration.has_value()) iteration = ChangedIteration();
  return iteration;
}

// The iteration of the period found last, unless it has its plan.
std::optional<profiler::Iteration> Sequence::NewIteration() {
  const std::optional<profiler::Period>& period = finder_.confirmed();
  if (!period.has_value() || finder_.in_doubt()) return std::nullopt;
  // A micro-batch of a step that is expected would settle in the places of its plan.
  const auto is_longer = [&](const auto& expected) { return IsLonger(expected->cycle.period, *period); };
  if (active_ == nullptr && std::ranges::any_of(waiting_, is_longer)) return AskAgain(period->length);
  const bool outgrown = Outgrown();
  bool have_one =
      (active_ != nullptr && !outgrown && (active_->matches() || active_->Serves(*period, last_stream_))) ||
      (pending_.exists() && pending_.cycle().period.found_at == period->found_at);
  for (const auto& plan : waiting_) have_one = have_one || plan->Serves(*period, last_stream_);
  if (have_one && exact_) return std::nullopt;
  const Tick now = history_.now();
  if (period->length == failed_length_ && now.count() < replan_from_)
    return AskAgain(replan_from_ - now.count());
  if (looked_for_ == period->found_at && now < look_again_at_) return AskAgain(look_again_at_ - now);
  looked_for_ = period->found_at;
  look_again_at_ = now + period->length / kLooksAPeriod;
  ++counters_.looks;
  const int64_t lag = profiler::ExactPeriod(history_, period->length);
  // What the job does while it is elsewhere is no round of it.
  if (lag == 0 && (have_one || !finder_.in_step())) return AskAgain(period->length);
  profiler::Iteration iteration = profiler::ExtractIteration(
      history_, {.length = lag == 0 ? period->length : lag, .found_at = period->found_at});
  if (iteration.slots.empty()) return std::nullopt;  // longer than the history
  // Some lifetimes may not have ended in any round seen; one more round settles them. The cut is far enough
  // away.
  if (iteration.unsettled > 0 && now < period->found_at + period->length)
    return AskAgain(period->length / kLooksAPeriod);
  const uint64_t fingerprint = FingerprintOf(iteration.slots);
  if (have_one && Awaits() && Has(fingerprint)) return std::nullopt;  // it pushes no other out
  const bool gives_way = !std::exchange(exact_, lag != 0) && next_cycle_.period.found_at == period->found_at;
  const uint64_t before = std::exchange(fingerprint_, fingerprint);
  if (before == fingerprint && have_one) return std::nullopt;
  uint64_t replaced = gives_way ? before : 0;
  if (outgrown) replaced = active_->cycle.fingerprint;
  next_cycle_ = {.period = {.length = iteration.period, .found_at = period->found_at},
                 .fingerprint = fingerprint,
                 .from = profiler::FirstRound(history_, iteration.period),
                 .origin = iteration.origin,
                 .replaces = replaced};
  return iteration;
}

// The cycle of the plan in use as it is now, where that serves it badly: its tokens are others by now, or
// something lies in their places.
std::optional<profiler::Iteration> Sequence::ChangedIteration() {
  if (active_ == nullptr || Awaits() || IsDoubted(active_->cycle) || Outgrown()) return std::nullopt;
  if (history_.now().count() < replan_from_) return std::nullopt;
  const int64_t length = active_->cycle.period.length;
  const bool changed = rules_.replan && !active_->matches();
  const bool lies_badly = active_->in_the_way || active_->rests || active_->takes_too_much;
  const bool in_the_way = rules_.lay_again && lies_badly && active_->matches();
  if (!changed && !in_the_way) return std::nullopt;
  if (!profiler::RepeatsExactly(history_, length)) return std::nullopt;
  const profiler::Period period = {.length = length, .found_at = history_.now()};
  profiler::Iteration iteration = profiler::ExtractIteration(history_, period);
  if (iteration.slots.empty() || iteration.unsettled > 0) return std::nullopt;
  const uint64_t fingerprint = FingerprintOf(iteration.slots);
  if (!in_the_way) {
    if (fingerprint == active_->cycle.fingerprint) return std::nullopt;
    for (const auto& plan : waiting_) {
      if (fingerprint == plan->cycle.fingerprint) return std::nullopt;
    }
  }
  PutOffPlanning(length);
  next_cycle_ = {.period = {.length = length, .found_at = active_->cycle.period.found_at},
                 .fingerprint = fingerprint,
                 .reason = in_the_way ? PlannedCycle::Reason::kInTheWay : PlannedCycle::Reason::kChanged,
                 .from = active_->cycle.from,
                 .origin = iteration.origin,
                 .replaces = active_->cycle.fingerprint};
  return iteration;
}

std::nullopt_t Sequence::AskAgain(int64_t tokens) {
  ask_again_at_ = history_.now() + std::max<int64_t>(1, tokens);
  return std::nullopt;
}

std::shared_ptr<Candidate> Sequence::BeginPlanning() {
  if (pending_.exists()) ++counters_.plans_dropped;
  if (!exact_) AskAgain(2 * next_cycle_.period.length);
  return pending_.Begin(next_cycle_);
}

Sequence::Counters Sequence::counters() const {
  Counters counters = counters_;
  if (active_ != nullptr) Account(*active_, counters);
  return counters;
}

}  // namespace reprise::replay
