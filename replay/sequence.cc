#include "replay/sequence.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <span>
#include <utility>

#include "absl/hash/hash.h"

namespace reprise::replay {
namespace {

// A plan whose matched share stays below this gives way to a longer period. Design, section 4.
constexpr double kGoodShare = 0.98;
// How many allocations are fed to a shadow matcher at once so that it is in step when the cut comes.
constexpr int64_t kShadowLead = 64;
// A plan that matches less than this much of what happens is not being followed, where others might be.
constexpr double kUsefulShare = 0.9;
// Where the cut has come again so many rounds in a row and was not met, a plan is adopted a little behind it.
constexpr int kCutsToMiss = 3;
// One that has not been adopted in so many is not going to be.
constexpr int64_t kRoundsToAdopt = 4;
// Live levels are the same that are apart by less than this part of them.
constexpr int64_t kLevelTolerance = 64;
// A look for an exact period costs at most so many comparisons a token of it: long runs of equal allocations
// would make it quadratic, and the job waits meanwhile.
constexpr int64_t kLooksAToken = 8;
// A round is looked through at most so many times while it takes place, however short the plan in use is that
// asks at each of its own.
constexpr int64_t kLooksAPeriod = 8;

// A cycle that another one is inside of is longer by at least this part of it.
constexpr int64_t kPartsLonger = 8;

// Plans kept beside the one in use. Each costs a comparison an allocation and some hundred bytes a slot.
constexpr size_t kMostWaiting = 3;
// More than this part of a round's bytes not where they were planned: something lies in the way.
constexpr int64_t kConflictParts = 50;
// More than this part of the swing of a cycle where its own blocks still lie, and its period is in doubt.
constexpr int64_t kOutstayParts = 16;
// Such a block is noticed by the next round that wants its place. One that has been there for so many is there for good.
constexpr int64_t kRoundsOutstayed = 2;
// Rounds after which a plan has proved itself, and the most to wait before planning again. Rounds shorter than so many
// allocations are counted as parts of one: what is planned every few milliseconds keeps a core busy.
constexpr int64_t kGoodRounds = 8;
constexpr int64_t kMostReplanRounds = 64;
constexpr int64_t kShortRound = 64;
// A job's start may take this part longer than in the run that its plan is of: threads that compile are never
// done after the same number of allocations.
constexpr int64_t kLongerStartParts = 8;
// Of the slots that a waiting plan has seen in a job's start, so many are known, the latest ones: 2 MiB.
constexpr size_t kMostStartSlots = size_t{1} << 17;

// The same for the same round, wherever it was cut, and in a later run. (How long what is never freed lives is
// told by the cycle that it was saved with.)
uint64_t Fingerprint(std::span<const profiler::Slot> cycle) {
  uint64_t sum = 0;
  const profiler::Slot* before = &cycle.back();
  for (const profiler::Slot& slot : cycle) {
    sum += absl::HashOf(before->bytes.count(), before->stream, slot.bytes.count(), slot.stream,
                        slot.persistent ? 0 : slot.length);
    before = &slot;
  }
  return sum;
}

// The slot that a token is where `cut` was the first one and nothing else than the cycle came in between.
uint32_t SlotByNumber(const ServingPlan& plan, Tick cut, Tick token) {
  const auto cycle = static_cast<int64_t>(plan.slots.size());
  const int64_t place = (token - cut) % cycle;
  return static_cast<uint32_t>(place < 0 ? place + cycle : place);
}

}  // namespace

void Sequence::OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live, Step& step) {
  step.wants_plan = finder_.OnAlloc(bytes, stream, live);
  step.token = history_.OnAlloc(bytes, alignment, stream, live);
  history_.Reserve(finder_.capacity());
  last_stream_ = stream;
  step.at_cut = PollCandidate() && CandidateAtCut(bytes, stream, step.slot) && !IsDoubted(candidate_cycle_);
  if (!step.at_cut && (active_ != nullptr || !waiting_.empty())) {
    if (active_ != nullptr) step.slot = active_->matcher->Step(bytes, stream);
    if (!waiting_.empty()) FollowWaiting(bytes, stream, step);
    if (active_ != nullptr) {
      CountShare(bytes, step);
      if (step.slot == Matcher::kNoSlot || active_->astray > Bytes(0) || finder_.in_doubt())
        FollowFromEntry(bytes, stream, step);
    }
  }
  if (step.token == ask_again_at_) step.wants_plan = true;
}

// True when a candidate is being followed. Starts its shadow matcher when it has just been solved, with the
// last allocations before this one, so that it is in step at once; at the place that they have by their number, as
// micro-batches that are alike cannot be told apart.
bool Sequence::PollCandidate() {
  if (candidate_ == nullptr || candidate_in_shadow_) return candidate_ != nullptr;
  if (!candidate_->ready.load(std::memory_order_acquire)) return false;
  if (!candidate_->status.ok()) {
    Drop();
    return false;
  }
  candidate_in_shadow_ = true;
  missed_cuts_ = 0;
  missed_at_ = Tick(0);
  shadow_since_ = history_.now();
  const Tick now = history_.now();  // this allocation is in the history already, and not to be fed
  const Tick first = std::max(history_.oldest(), now - 1 - kShadowLead);
  candidate_->matcher->StartAt(SlotByNumber(candidate_->plan, candidate_cycle_.origin, first));
  for (Tick t = first; t < now - 1; t = t + 1) {
    candidate_->matcher->Step(history_.at(t).bytes, history_.at(t).stream);
  }
  return true;
}

// Steps the shadow matcher; true when this allocation is the cut, which is `slot` then, and the matcher in
// step. Where the allocations around the cut are never the same, one a little behind it has to do. Of several
// rounds it is the cut of the one that has come since the plan was asked for: then what is live now is what
// the plan takes to be.
bool Sequence::CandidateAtCut(Bytes bytes, Stream stream, uint32_t& slot) {
  Matcher& matcher = *candidate_->matcher;
  const uint32_t cut = matcher.AtCut();
  const uint32_t own = matcher.Step(bytes, stream);
  if (own == Matcher::kNoSlot) return false;
  if (own != cut && (own != matcher.BehindCut() || !MissesCuts())) return false;
  const auto cycle = static_cast<int64_t>(candidate_->plan.slots.size());
  const int64_t round = cycle / RoundsOf(candidate_->plan);
  const int64_t within = own % round;
  const int64_t since = history_.now() - 1 - candidate_cycle_.origin - within;
  slot = static_cast<uint32_t>((since + round / 2) / round * round % cycle + within);
  matcher.GoOnLater(static_cast<uint32_t>((slot + cycle - own) % cycle / round));
  return true;
}

// Whether the job has come by the cut again and not met it, a few rounds in a row of little else than the
// plan's; asked behind the cut. (What comes by it at other times is a part of something else.)
bool Sequence::MissesCuts() {
  const int64_t since = history_.now() - missed_at_;
  const int64_t round = candidate_cycle_.period.length;
  const int64_t reach = Matcher::ReachOf(round);
  if (since <= reach) return missed_cuts_ >= kCutsToMiss;
  const int64_t mismatches = candidate_->matcher->mismatches();
  const bool follows =
      std::abs(since - round) <= reach &&
      static_cast<double>(mismatches - missed_mismatches_) < (1 - kUsefulShare) * static_cast<double>(round);
  missed_cuts_ = follows ? missed_cuts_ + 1 : 0;
  missed_at_ = history_.now();
  missed_mismatches_ = mismatches;
  return missed_cuts_ >= kCutsToMiss;
}

// For how many rounds the solved plan has waited for its cut.
int64_t Sequence::ShadowRounds() const {
  return candidate_in_shadow_ ? (history_.now() - shadow_since_) / candidate_cycle_.period.length : 0;
}

// A plan that is being solved or waits for its cut may still be adopted.
bool Sequence::Awaits() const { return candidate_ != nullptr && ShadowRounds() < kRoundsToAdopt; }

bool Sequence::Has(uint64_t fingerprint) const {
  const auto is_it = [&](const auto& plan) { return plan->cycle.fingerprint == fingerprint; };
  return (active_ != nullptr && is_it(active_)) || std::ranges::any_of(waiting_, is_it);
}

// From here on it lies as it was planned.
void Sequence::EndFirstCycle(Active& used) {
  used.start_slots.clear();
  if (!used.plan.later.empty()) used.plan.slots = std::exchange(used.plan.later, {});
}

// A plan comes into use.
void Sequence::BeginAccount(Active& used) {
  used.mismatches_before = used.matcher->mismatches();
  used.times_lost_before = used.matcher->times_lost();
  if (used.of_earlier_run) used.astray = Bytes(0);  // its first cycle is laid around what is there
}

// Counts what a plan met with while it was in use.
void Sequence::Account(const Active& used, Counters& counters) {
  counters.mismatches += used.matcher->mismatches() - used.mismatches_before;
  counters.times_lost += used.matcher->times_lost() - used.times_lost_before;
}

void Sequence::Adopt(std::vector<Staying> stays) {
  if (active_ != nullptr) {
    Account(*active_, counters_);
    EndFirstCycle(*active_);
    waiting_.push_back(std::move(active_));
  }
  std::erase_if(waiting_, [&](const std::unique_ptr<Active>& other) {
    return other->cycle.fingerprint == candidate_cycle_.fingerprint ||
           other->cycle.fingerprint == candidate_cycle_.replaces;
  });
  if (waiting_.size() > (rules_.plan_set ? kMostWaiting : 0)) {
    waiting_.erase(std::min_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
      return a->last_used < b->last_used;
    }));
  }
  active_ = std::make_unique<Active>();
  active_->plan = std::move(candidate_->plan);
  active_->matcher = std::move(candidate_->matcher);
  active_->cycle = candidate_cycle_;
  active_->stays = std::move(stays);
  active_->window_tokens = 1;  // the present allocation, which is the cut
  active_->window_matched = 1;
  active_->last_used = history_.now() - 1;
  BeginAccount(*active_);
  candidate_.reset();
  failed_length_ = 0;
  if (active_->cycle.reason != Reason::kFound) ++counters_.plans_renewed;
}

void Sequence::Expect(Expected expected) {
  auto known = std::make_unique<Active>();
  known->plan = std::move(expected.plan);
  known->matcher = std::make_unique<Matcher>(known->plan);
  const int64_t round = static_cast<int64_t>(known->plan.slots.size()) / RoundsOf(known->plan);
  known->cycle = {.period = {.length = round, .found_at = Tick(-1)},
                  .fingerprint = Fingerprint(std::span(known->plan.cycle).first(static_cast<size_t>(round))),
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
  const auto add = [&](const Active& known) {
    const Tick from = known.cycle.from;
    const uint32_t to_cut = SlotByNumber(known.plan, from, known.cycle.origin);  // the rest of a round
    plans.push_back({known.plan.cycle, from, from + to_cut, known.stays});
  };
  if (active_ != nullptr) add(*active_);
  for (const auto& other : waiting_) add(*other);
  return plans;
}

bool Sequence::Stays(Tick token) const {
  return active_ != nullptr && std::ranges::binary_search(active_->stays, token, {}, &Staying::token);
}

uint32_t Sequence::SlotInStart(Tick token) const {
  if (active_ == nullptr || token < history_.oldest()) return Matcher::kNoSlot;
  const auto seen =
      std::ranges::lower_bound(active_->start_slots, token, {}, &std::pair<Tick, uint32_t>::first);
  if (seen == active_->start_slots.end()) return Matcher::kNoSlot;
  // Those by which the matcher has found its place again are in front of the first that it has told.
  const std::vector<profiler::Slot>& cycle = active_->plan.cycle;
  size_t slot = seen->second;
  for (Tick t = seen->first; t > token; t = t - 1) {
    slot = (slot + cycle.size() - 1) % cycle.size();
    if (history_.at(t - 1).bytes != cycle[slot].bytes) return Matcher::kNoSlot;
  }
  return static_cast<uint32_t>(slot);
}

std::vector<OtherPlan> Sequence::OtherPlans() const {
  std::vector<OtherPlan> others;
  if (!rules_.turns) return others;
  if (active_ != nullptr) others.push_back({&active_->plan, active_->last_used});
  for (const auto& other : waiting_) others.push_back({&other->plan, other->last_used});
  return others;
}

Offset Sequence::plans_end() const {
  Offset end;
  ForEachPlan([&](const ServingPlan& plan) { end = std::max(end, plan.end); });
  return end;
}

// By more than noise: of two cycles that differ by a stray allocation none is inside the other.
bool Sequence::IsLonger(const profiler::Period& period, const profiler::Period& than) {
  return kPartsLonger * (period.length - than.length) > than.length;
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
  std::unique_ptr<Active>* next = nullptr;
  for (std::unique_ptr<Active>& other : waiting_) {
    if (other->of_earlier_run && step.token == other->cycle.from)
      other->matcher->StartAt(SlotByNumber(other->plan, other->cycle.origin, step.token));
    const uint32_t slot = other->matcher->Step(bytes, stream);
    CountAstray(*other, /*in_use=*/false, slot, bytes, stream);
    if (active_ == nullptr && slot != Matcher::kNoSlot) {
      if (other->start_slots.size() == kMostStartSlots) other->start_slots.pop_front();
      other->start_slots.emplace_back(step.token, slot);
    }
    const bool wanted = lost || (IsLonger(other->cycle.period, active_->cycle.period) && !IsAstray(*other));
    if (next != nullptr || !wanted || !other->matcher->Sure(stream)) continue;  // which has a slot
    if (other->of_earlier_run && step.token < other->cycle.from) continue;
    next = &other;
    step.slot = slot;
  }
  if (next == nullptr) return;
  if (active_ == nullptr) {
    active_ = std::move(*next);
    BeginAccount(*active_);
    waiting_.erase(waiting_.begin() + (next - waiting_.data()));
    fingerprint_ = active_->cycle.fingerprint;
    step.resumed = std::exchange(active_->of_earlier_run, false);
    return;
  }
  Account(*active_, counters_);
  EndFirstCycle(*active_);
  std::swap(active_, *next);
  BeginAccount(*active_);
  active_->window_tokens = 0;
  active_->window_matched = 0;
  active_->window_bytes = active_->window_conflicts = Bytes(0);
  ++counters_.plan_switches;
  step.resumed = std::exchange(active_->of_earlier_run, false);
}

bool Sequence::promising() const {
  const Tick now = history_.now();
  if (candidate_ != nullptr) return Awaits();
  if (active_ != nullptr) return active_->matched_share >= kUsefulShare;
  const std::optional<profiler::Period>& period = finder_.confirmed();
  return period.has_value() && now < period->found_at + kRoundsToAdopt * period->length;
}

// Tries again later, each time after twice as long.
void Sequence::Drop() {
  candidate_.reset();
  ++counters_.plans_failed;
  failed_length_ = finder_.confirmed()->length;
  PutOffPlanning(failed_length_);
  AskAgain(replan_from_ - history_.now().count());
}

void Sequence::PutOffPlanning(int64_t round) {
  replan_from_ = history_.now().count() + replan_rounds_ * std::max(round, kShortRound);
  replan_rounds_ = std::min(2 * replan_rounds_, kMostReplanRounds);
}

void Sequence::CountShare(Bytes bytes, Step& step) {
  Active& active = *active_;
  ++active.window_tokens;
  if (step.slot != Matcher::kNoSlot) {
    ++active.window_matched;
    active.last_used = step.token;
  }
  active.window_bytes += bytes;
  if (active.window_tokens < static_cast<int64_t>(active.plan.slots.size())) return;
  active.matched_share =
      static_cast<double>(active.window_matched) / static_cast<double>(active.window_tokens);
  // In its first cycle, what was there before the plan is in its way, and goes by itself.
  active.in_the_way = active.settled && active.window_conflicts * kConflictParts > active.window_bytes;
  const bool good = active.matched_share >= kGoodShare && !active.in_the_way;
  active.good_rounds = good ? active.good_rounds + 1 : 0;
  const auto round = static_cast<int64_t>(active.plan.slots.size());
  if (active.good_rounds * round >= kGoodRounds * std::max(round, kShortRound)) replan_rounds_ = 1;
  active.window_tokens = 0;
  active.window_matched = 0;
  active.window_bytes = active.window_conflicts = Bytes(0);
  step.settled = !std::exchange(active.settled, true);
  EndFirstCycle(active);
  step.wants_plan = true;
}

// Whether a block was placed there by the plan in use, whose present slot is `slot`, and lives for longer than that says.
bool Sequence::Outstays(uint32_t slot, Tick since, Offset offset) const {
  if (since < Tick(0)) return false;
  const ServingPlan& plan = active_->plan;
  const auto cycle = static_cast<int64_t>(plan.slots.size());
  const int64_t age = history_.now() - 1 - since;
  const auto its = static_cast<size_t>(((slot - age) % cycle + cycle) % cycle);
  return plan.slots[its].offset == offset && age > plan.cycle[its].length && age < kRoundsOutstayed * cycle;
}

// Then the job does not do what was planned.
void Sequence::OnTaken(uint32_t slot, Bytes bytes, Tick since, Offset offset) {
  if (!rules_.rest || IsAstray(*active_) || !Outstays(slot, since, offset)) return;
  active_->astray += bytes;
  const std::optional<profiler::Period>& period = finder_.confirmed();
  if (active_->astray * kOutstayParts <= active_->plan.swing || !period.has_value() ||
      !IsOf(active_->cycle, *period))
    return;
  finder_.Doubt();
  active_->doubted = true;
}

// What was none of a plan's slots while its place was lost, or came while another plan was in use, lies elsewhere. At an
// entry little of it is still live.
void Sequence::CountAstray(Active& active, bool in_use, uint32_t slot, Bytes bytes, Stream stream) const {
  if (IsDoubted(active.cycle) || (in_use && Outgrown())) {
    active.doubted = true;
    active.astray = active.plan.swing + Bytes(1);  // all of it
    return;
  }
  if (!rules_.entries) return;
  if (slot != Matcher::kNoSlot && active.plan.slots[slot].entry) {
    active.astray = Bytes(0);
    return;
  }
  const bool elsewhere = slot == Matcher::kNoSlot ? active.matcher->Lost(stream) : !in_use;
  if (elsewhere && !IsAstray(active)) active.astray += bytes;
}

// A plan of which much lies elsewhere is followed again from an entry on; its matcher goes on meanwhile.
void Sequence::FollowFromEntry(Bytes bytes, Stream stream, Step& step) {
  CountAstray(*active_, /*in_use=*/true, step.slot, bytes, stream);
  if (step.slot == Matcher::kNoSlot || !IsAstray(*active_)) return;
  ++counters_.withheld;
  step.slot = Matcher::kNoSlot;
}

// Whether it was planned for that period, which may have a stray allocation in it, or be several rounds.
bool Sequence::IsOf(const Cycle& cycle, const profiler::Period& period) {
  return cycle.period.found_at == period.found_at ||
         (!IsLonger(period, cycle.period) && !IsLonger(cycle.period, period));
}

// Whether it is of a period that is judged anew: what is done in the meantime is not what was planned.
bool Sequence::IsDoubted(const Cycle& cycle) const {
  return finder_.in_doubt() && IsOf(cycle, *finder_.confirmed());
}

// Whether the plan in use turned out to be of a micro-batch whose step has been found.
bool Sequence::Outgrown() const {
  return active_ != nullptr && active_->doubted && IsLonger(*finder_.confirmed(), active_->cycle.period);
}

// Whether the period found last is the one of a plan: found again after something else, or another as long?
bool Sequence::ServedBy(const Active& active) const {
  const profiler::Period& period = *finder_.confirmed();
  return period.length == active.cycle.period.length &&
         (period.found_at == active.cycle.period.found_at || active.matcher->InStep(last_stream_));
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
      (active_ != nullptr && !outgrown && (active_->matched_share >= kGoodShare || ServedBy(*active_))) ||
      (candidate_ != nullptr && candidate_cycle_.period.found_at == period->found_at);
  for (const auto& plan : waiting_) have_one = have_one || ServedBy(*plan);
  if (have_one && exact_) return std::nullopt;
  const Tick now = history_.now();
  if (period->length == failed_length_ && now.count() < replan_from_)
    return AskAgain(replan_from_ - now.count());
  if (looked_for_ == period->found_at && now < look_again_at_) return AskAgain(look_again_at_ - now);
  looked_for_ = period->found_at;
  look_again_at_ = now + period->length / kLooksAPeriod;
  ++counters_.looks;
  const int64_t lag = ExactPeriod(period->length);
  // What the job does while it is elsewhere is no round of it.
  if (lag == 0 && (have_one || !finder_.in_step())) return AskAgain(period->length);
  profiler::Iteration iteration = profiler::ExtractIteration(
      history_, {.length = lag == 0 ? period->length : lag, .found_at = period->found_at});
  if (iteration.slots.empty()) return std::nullopt;  // longer than the history
  // Some lifetimes may not have ended in any round seen; one more round settles them. The cut is far enough
  // away.
  if (iteration.unsettled > 0 && now < period->found_at + period->length)
    return AskAgain(period->length / kLooksAPeriod);
  const uint64_t fingerprint = Fingerprint(iteration.slots);
  if (have_one && Awaits() && Has(fingerprint)) return std::nullopt;  // it pushes no other out
  const bool gives_way = !std::exchange(exact_, lag != 0) && next_cycle_.period.found_at == period->found_at;
  const uint64_t before = std::exchange(fingerprint_, fingerprint);
  if (before == fingerprint && have_one) return std::nullopt;
  uint64_t replaced = gives_way ? before : 0;
  if (outgrown) replaced = active_->cycle.fingerprint;
  next_cycle_ = {.period = {.length = iteration.period, .found_at = period->found_at},
                 .fingerprint = fingerprint,
                 .from = FirstRound(iteration.period),
                 .origin = iteration.origin,
                 .replaces = replaced};
  return iteration;
}

// Where the tokens that have come again after `period` others began, as far as they are remembered.
// Walks back over the history at most once for each plan.
Tick Sequence::FirstRound(int64_t period) const {
  Tick first = history_.now() - period;
  while (first > history_.oldest()) {
    const profiler::History::Entry& before = history_.at(first - 1);
    const profiler::History::Entry& again = history_.at(first - 1 + period);
    if (before.bytes != again.bytes || before.stream != again.stream) break;
    first = first - 1;
  }
  return first;
}

// The cycle of the plan in use as it is now, where that serves it badly: its tokens are others by now, or
// something lies in their places.
std::optional<profiler::Iteration> Sequence::ChangedIteration() {
  if (active_ == nullptr || Awaits() || IsDoubted(active_->cycle) || Outgrown()) return std::nullopt;
  if (history_.now().count() < replan_from_) return std::nullopt;
  const int64_t length = active_->cycle.period.length;
  const bool changed = rules_.replan && active_->matched_share < kGoodShare;
  const bool in_the_way = rules_.lay_again && active_->in_the_way && active_->matched_share >= kGoodShare;
  if (!changed && !in_the_way) return std::nullopt;
  const int64_t tokens = length + profiler::PeriodFinder::kMinPeriod;
  int64_t looks = tokens;
  if (!RepeatsExactly(tokens, length, looks)) return std::nullopt;
  const profiler::Period period = {.length = length, .found_at = history_.now()};
  profiler::Iteration iteration = profiler::ExtractIteration(history_, period);
  if (iteration.slots.empty() || iteration.unsettled > 0) return std::nullopt;
  const uint64_t fingerprint = Fingerprint(iteration.slots);
  if (!in_the_way) {
    if (fingerprint == active_->cycle.fingerprint) return std::nullopt;
    for (const auto& plan : waiting_) {
      if (fingerprint == plan->cycle.fingerprint) return std::nullopt;
    }
  }
  PutOffPlanning(length);
  next_cycle_ = {.period = {.length = length, .found_at = active_->cycle.period.found_at},
                 .fingerprint = fingerprint,
                 .reason = in_the_way ? Reason::kInTheWay : Reason::kChanged,
                 .from = active_->cycle.from,
                 .origin = iteration.origin,
                 .replaces = active_->cycle.fingerprint};
  return iteration;
}

std::nullopt_t Sequence::AskAgain(int64_t tokens) {
  ask_again_at_ = history_.now() + std::max<int64_t>(1, tokens);
  return std::nullopt;
}

// After how many tokens a whole round of the latest ones repeats, each of them and its live level: `period`,
// or the least that is shorter; 0 when none does. The finder steps over noise, and may have found a period
// with some of it inside. A plan made of such a round would have a stray allocation in it and lack the one
// that this has pushed out, in every round.
int64_t Sequence::ExactPeriod(int64_t period) const {
  // Over just one round, a stray allocation before it looks like a part of the period.
  const int64_t tokens = period + profiler::PeriodFinder::kMinPeriod;
  int64_t looks = kLooksAToken * tokens;
  if (RepeatsExactly(tokens, period, looks)) return period;
  for (int64_t lag = profiler::PeriodFinder::kMinPeriod; lag < period && looks > 0; ++lag) {
    if (RepeatsExactly(tokens, lag, looks)) return lag;
  }
  return 0;
}

// Each token looked at takes one of `looks`; where none is left, it is not known to repeat.
bool Sequence::RepeatsExactly(int64_t tokens, int64_t lag, int64_t& looks) const {
  const Tick now = history_.now();
  if (now - tokens - lag < history_.oldest()) return false;
  for (Tick t = now - 1; t >= now - tokens; t = t - 1) {
    if (--looks < 0) return false;
    const profiler::History::Entry& latest = history_.at(t);
    const profiler::History::Entry& before = history_.at(t - lag);
    if (latest.bytes != before.bytes || latest.stream != before.stream) return false;
    const Bytes level = std::max(latest.live_before, before.live_before);
    const Bytes apart = level - std::min(latest.live_before, before.live_before);
    if (apart * kLevelTolerance > level) return false;
  }
  return true;
}

std::shared_ptr<Candidate> Sequence::BeginPlanning() {
  if (candidate_ != nullptr) {
    candidate_->cancel = true;
    ++counters_.plans_dropped;
  }
  candidate_ = std::make_shared<Candidate>();
  candidate_cycle_ = next_cycle_;
  candidate_in_shadow_ = false;
  if (!exact_) AskAgain(2 * candidate_cycle_.period.length);
  return candidate_;
}

Sequence::Counters Sequence::counters() const {
  Counters counters = counters_;
  if (active_ != nullptr) Account(*active_, counters);
  return counters;
}

}  // namespace reprise::replay
