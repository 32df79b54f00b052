#include "replay/sequence.h"

#include <algorithm>
#include <atomic>
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
// A plan whose cut has not come in so many rounds is not going to be adopted.
constexpr int64_t kRoundsToAdopt = 4;
// Live levels are the same that are apart by less than this part of them.
constexpr int64_t kLevelTolerance = 64;
// A look for an exact period costs at most so many comparisons a token of it: long runs of equal allocations
// would make it quadratic, and the job waits meanwhile.
constexpr int64_t kLooksAToken = 8;

// The same for the same cycle, wherever it was cut.
uint64_t Fingerprint(const profiler::Iteration& iteration) {
  uint64_t sum = 0;
  const profiler::Slot* before = &iteration.slots.back();
  for (const profiler::Slot& slot : iteration.slots) {
    sum += absl::HashOf(before->bytes.count(), before->stream, slot.bytes.count(), slot.stream, slot.length,
                        slot.persistent);
    before = &slot;
  }
  return sum;
}

}  // namespace

void Sequence::OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live, Step& step) {
  step.wants_plan = finder_.OnAlloc(bytes, stream, live);
  step.token = history_.OnAlloc(bytes, alignment, stream, live);
  history_.Reserve(finder_.capacity());
  last_stream_ = stream;
  step.at_cut = PollCandidate() && CandidateAtCut(bytes, stream);
  if (active_ != nullptr && !step.at_cut) {
    step.slot = active_->matcher->Step(bytes, stream);
    CountShare(step);
  }
  if (step.token == ask_again_at_) step.wants_plan = true;
}

// True when a candidate is being followed. Starts its shadow matcher when it has just been solved, with the
// last allocations before this one, so that it is in step at once.
bool Sequence::PollCandidate() {
  if (candidate_ == nullptr || candidate_in_shadow_) return candidate_ != nullptr;
  if (!candidate_->ready.load(std::memory_order_acquire)) return false;
  if (!candidate_->status.ok()) {
    ++counters_.plans_failed;
    candidate_.reset();
    return false;
  }
  candidate_in_shadow_ = true;
  shadow_since_ = history_.now();
  const Tick now = history_.now();  // this allocation is in the history already, and not to be fed
  for (Tick t = std::max(history_.oldest(), now - 1 - kShadowLead); t < now - 1; t = t + 1) {
    candidate_->matcher->Step(history_.at(t).bytes, history_.at(t).stream);
  }
  return true;
}

// Steps the shadow matcher; true when this allocation is the cut and the matcher in step.
bool Sequence::CandidateAtCut(Bytes bytes, Stream stream) {
  const bool at_cut = candidate_->matcher->AtCut();
  return candidate_->matcher->Step(bytes, stream) == 0 && at_cut;
}

const ServingPlan& Sequence::Adopt() {
  if (active_ != nullptr) {
    counters_.mismatches += active_->matcher->mismatches();
    counters_.times_lost += active_->matcher->times_lost();
  }
  active_ = std::make_unique<Active>();
  active_->plan = std::move(candidate_->plan);
  active_->matcher = std::move(candidate_->matcher);
  active_->period = candidate_period_;
  candidate_.reset();
  window_tokens_ = 1;  // the present allocation, which is slot 0
  window_matched_ = 1;
  matched_share_ = 1.0;
  ++counters_.plans;
  return active_->plan;
}

bool Sequence::promising() const {
  const Tick now = history_.now();
  if (candidate_ != nullptr) {
    return !candidate_in_shadow_ || now < shadow_since_ + kRoundsToAdopt * candidate_period_.length;
  }
  if (active_ != nullptr) return matched_share_ >= kUsefulShare;
  const std::optional<profiler::Period>& period = finder_.confirmed();
  return period.has_value() && now < period->found_at + kRoundsToAdopt * period->length;
}

void Sequence::Drop() {
  candidate_.reset();
  ++counters_.plans_failed;
}

void Sequence::CountShare(Step& step) {
  ++window_tokens_;
  if (step.slot != Matcher::kNoSlot) ++window_matched_;
  if (window_tokens_ < active_->period.length) return;
  matched_share_ = static_cast<double>(window_matched_) / static_cast<double>(window_tokens_);
  window_tokens_ = 0;
  window_matched_ = 0;
  step.settled = !std::exchange(active_->settled, true);
  step.wants_plan = true;
}

// Whether the period found last is the one of a plan: found again after something else, or another as long?
bool Sequence::ServedBy(const Active& active) const {
  const profiler::Period& period = *finder_.confirmed();
  return period.length == active.period.length &&
         (period.found_at == active.period.found_at || InStep(last_stream_));
}

std::optional<profiler::Iteration> Sequence::IterationToPlan() {
  const std::optional<profiler::Period>& period = finder_.confirmed();
  if (!period.has_value()) return std::nullopt;
  const bool have_one = (active_ != nullptr && (matched_share_ >= kGoodShare || ServedBy(*active_))) ||
                        (candidate_ != nullptr && candidate_period_.found_at == period->found_at);
  if (have_one && exact_) return std::nullopt;
  const int64_t lag = ExactPeriod(period->length);
  if (have_one && lag == 0) return AskAgain(period->length);
  profiler::Iteration iteration = profiler::ExtractIteration(
      history_, {.length = lag == 0 ? period->length : lag, .found_at = period->found_at});
  if (iteration.slots.empty()) return std::nullopt;  // longer than the history
  // Some lifetimes may not have ended in any round seen; one more round settles them. The cut is far enough
  // away.
  if (iteration.unsettled > 0 && history_.now() < period->found_at + period->length)
    return AskAgain(period->length / 8);
  exact_ = lag != 0;
  const uint64_t fingerprint = Fingerprint(iteration);
  if (std::exchange(fingerprint_, fingerprint) == fingerprint && have_one) return std::nullopt;
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
  candidate_period_ = *finder_.confirmed();
  candidate_in_shadow_ = false;
  if (!exact_) AskAgain(2 * candidate_period_.length);
  return candidate_;
}

void Sequence::CancelPlanning() {
  if (candidate_ != nullptr) candidate_->cancel = true;
}

Sequence::Counters Sequence::counters() const {
  Counters counters = counters_;
  if (active_ != nullptr) {
    counters.mismatches += active_->matcher->mismatches();
    counters.times_lost += active_->matcher->times_lost();
  }
  return counters;
}

}  // namespace reprise::replay
