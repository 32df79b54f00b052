#include "profiler/period_finder.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace reprise::profiler {
namespace {

using State = TokenFollower::State;

// The tracker has been confirmed and tolerates more, 12 %: what it loses too early would be taken for a new period.
constexpr int64_t kTrackerMatchesPerMiss = 8;
// A candidate that has repeated so often unconfirmed is dropped, to be judged afresh with the swings seen by then.
constexpr int64_t kMaxCandidatePeriods = 64;

// A short period repeats by chance: its confirmation takes so many matches at least.
constexpr int64_t kMinMatches = 48;

// A challenger matches more than one round of the confirmed cycle, by this part of it: behind an interruption
// the old cycle is found again at a wrong distance, and matches for one round exactly.
constexpr int64_t kChallengeParts = 8;
// So many rounds of a period that is in doubt have to match before it is confirmed again: most steps have come again by
// then. When it has been in doubt for kHoldBackPeriods, it takes no more than any other.
constexpr int64_t kDoubtedRounds = 4;
// One that is longer and came again exactly, twice, is a step of passes that are alike but for a few tokens: 1 in so many.
constexpr int64_t kExactRounds = 2;
constexpr int64_t kExactPerMiss = 128;
// A confirmed period that was lost for so many of its lengths no longer has to be beaten.
constexpr int64_t kGiveUpPeriods = 4;
// A confirmed period that has not gone round so often before it was given up was a false alarm: lengths that
// come in random order repeat by chance. Each one doubles the matches asked for, up to so many periods.
constexpr int64_t kTrueRounds = 8;
constexpr int64_t kMaxDoubt = 8;

// Beside a confirmed period the ring grows to hold so many of it, in case it is a part of a longer one.
constexpr int64_t kPeriodsRemembered = 256;

}  // namespace

PeriodFinder::PeriodFinder() : PeriodFinder(Options()) {}

PeriodFinder::PeriodFinder(Options options)
    : tokens_(options.initial_tokens, options.max_tokens, options.rules) {}

// In step it calls nothing, and what it calls otherwise comes last: the compiler saves no registers for either.
bool PeriodFinder::OnAlloc(Bytes bytes, Stream stream, Bytes live_before) {
  const RecentTokens::Taken token = tokens_.Take(bytes, stream, live_before);
  if (!tokens_.at_checkpoint() && tracker_.state == State::kInStep && live_candidates_ == 0 &&
      tokens_.At(tracker_.ref).hash == token.hash) {
    if (++tracker_.ref == tracker_.end) return RoundDone();
    return false;
  }
  return OffTheFastPath(tokens_.Lag(token));
}

[[gnu::noinline]] bool PeriodFinder::RoundDone() {
  tracker_.ref = tracker_.begin;
  FinishRound();
  return false;
}

[[gnu::noinline]] bool PeriodFinder::OffTheFastPath(int64_t lag) {
  if (tokens_.at_checkpoint()) tokens_.Checkpoint(!Settled());
  if (confirmed_) FollowTracker();
  const Challenger* best = FollowCandidates();
  if (best != nullptr) {
    Confirm(Lag(*best));
    return true;
  }
  if (steps_apart_ != 0) Propose(std::exchange(steps_apart_, 0));
  if (in_step()) return false;  // what the tracker matches needs no other explanation
  Propose(lag);
  return false;
}

// Whether it knows the period, and remembers enough in case that is a part of a longer one.
bool PeriodFinder::Settled() const {
  return !given_up_ &&
         (tokens_.now() - lost_at_ >= capacity() / 2 || capacity() >= kPeriodsRemembered * tracker_.length());
}

// ---- the tracker: the confirmed cycle

void PeriodFinder::FollowTracker() {
  if (in_doubt_) {
    if (tokens_.now() - doubted_at_ == PeriodCandidate::kHoldBackPeriods * confirmed_->length) doubt_ = 0;
    return;
  }
  const int64_t before = tracker_.ref;
  const bool was_lost = tracker_.state == State::kLost;
  if (tracker_.Follow(tokens_)) {
    if (tracker_.ref < before - tracker_.length() / 2) FinishRound();
  } else if (!Realign()) {
    if (was_lost) ++tracker_.misses;
    if (tracker_.state == State::kLost && !was_lost) LoseTracker();
  }
  if (!given_up_ && tokens_.now() - last_round_ > kGiveUpPeriods * tracker_.length()) GiveUp();
}

// Out of step, comes back at the cut, where an interrupted job goes on.
bool PeriodFinder::Realign() {
  if (!CycleHeld()) return false;
  if (cut_of_ != tracker_.begin) FindCut();
  const int64_t last = tracker_.Wrap(cut_ + RecentTokens::kGram - 1);
  // The level tells the first micro-batch of a step from the others, and a step from an evaluation.
  if (!tokens_.SameLevel(tokens_.At(last).level, tokens_.latest().level)) return false;
  for (int64_t i = 0; i < RecentTokens::kGram; ++i) {
    if (!tokens_.Same(tracker_.Wrap(last - i), tokens_.now() - 1 - i)) return false;
  }
  round_whole_ = false;
  tracker_.Restart(tracker_.Wrap(last + 1), tokens_.now());
  last_return_.Again(confirmed_->length, tokens_.now(), steps_apart_);
  return true;
}

// Once for each cycle that is left: O(1) a token, since a new cycle takes a whole round.
void PeriodFinder::FindCut() {
  cut_of_ = cut_ = tracker_.begin;
  for (int64_t tick = cut_; tick < tracker_.end; ++tick) {
    if (tokens_.At(tick).level < tokens_.At(cut_).level) cut_ = tick;
  }
}

// The reference has just gone past the end of the cycle. A round without interruption becomes the reference
// of the next, so that slow changes are followed and the ring never overwrites it. An evaluation's forward
// pass looks like the step's, but not at its level; a short round with something in between that was stepped
// over is longer, and would pass for two.
void PeriodFinder::FinishRound() {
  const int64_t offset = tracker_.ref - tracker_.begin;
  const int64_t boundary = tokens_.now() - offset;
  const int64_t matched = boundary - round_start_ - (tracker_.misses - round_misses_);
  if (2 * matched >= tracker_.length()) {
    ++iterations_;
    ++rounds_;
    given_up_ = false;
    last_round_ = tokens_.now();
  }
  const bool same =
      tokens_.SameLevel(tokens_.At(boundary - 1).level, tokens_.At(tracker_.end - 1).level) || !CycleHeld();
  const int64_t length = tracker_.length();
  const bool as_long = kTrackerMatchesPerMiss * std::abs(boundary - round_start_ - length) <= length;
  if (round_whole_ && same && as_long && boundary - round_start_ >= kMinPeriod) {
    tracker_.begin = round_start_;
    tracker_.end = boundary;
    tracker_.ref = round_start_ + offset;
    tracker_.cap = TokenFollower::CreditCap(boundary - round_start_);
  }
  round_start_ = boundary;
  round_misses_ = tracker_.misses;
  round_whole_ = true;
  if (!CycleHeld()) LoseTracker();
}

// Whether the ring still holds the cycle, and will until the end of the next round.
bool PeriodFinder::CycleHeld() const {
  return tracker_.begin + capacity() >= tokens_.now() + tracker_.length() + RecentTokens::kMargin;
}

void PeriodFinder::LoseTracker() {
  tracker_.state = State::kLost;
  round_whole_ = false;
  lost_at_ = tokens_.now();
}

void PeriodFinder::GiveUp() {
  given_up_ = true;
  if (judged_ || !tokens_.rules().doubt) return;
  judged_ = true;
  doubt_ = rounds_ < kTrueRounds
               ? 2 * std::min(std::max(doubt_, Evidence(confirmed_->length)), tokens_.most())
               : 0;
}

// The steps of which it may be a micro-batch are about as far apart as two doubts, at the same place of each.
void PeriodFinder::Doubt() {
  if (in_doubt_) return;
  in_doubt_ = given_up_ = judged_ = true;
  LoseTracker();
  if (tokens_.rules().doubt) doubt_ = std::max(doubt_, kDoubtedRounds * confirmed_->length);
  Propose(confirmed_->length);
  if (doubted_at_ != kNever) Propose(tokens_.now() - doubted_at_);
  doubted_at_ = tokens_.now();
}

// ---- candidates

// Follows each and drops those that fail. Returns the longest that has just earned its confirmation, or null.
const PeriodFinder::Challenger* PeriodFinder::FollowCandidates() {
  const Challenger* best = nullptr;
  for (int i = 0; i < live_candidates_;) {
    Challenger& c = candidates_[i];
    PeriodCandidate& candidate = c.candidate;
    const bool matched = candidate.Follow(tokens_);
    NoteStepsApart(candidate);
    if (candidate.lost() && given_up_) OnLoss(candidate.window());
    const bool stale = tokens_.now() - candidate.start() > kMaxCandidatePeriods * Lag(c);
    if (candidate.lost() || (stale && !candidate.Accumulates(tokens_))) {
      c = candidates_[--live_candidates_];
      continue;
    }
    bool earned = matched && Repeats(c) && BeatsTracker(c);
    if (earned && candidate.LookBack(tokens_)) earned = Repeats(c);
    if (earned && (best == nullptr || Lag(c) > Lag(*best))) best = &c;
    ++i;
  }
  return best;
}

void PeriodFinder::Propose(int64_t lag) {
  if (lag < kMinPeriod || live_candidates_ == kCandidates) return;
  if (lag + RecentTokens::kMargin > capacity()) return;
  if (2 * lag + 2 * RecentTokens::kMargin > tokens_.most()) return;
  for (int i = 0; i < live_candidates_; ++i) {
    if (Lag(candidates_[i]) == lag) return;
  }
  std::optional<PeriodCandidate> candidate = PeriodCandidate::At(lag, tokens_);
  if (!candidate) return;
  NoteStepsApart(*candidate);
  candidates_[live_candidates_++] = {*candidate, tokens_.now(), tracker_.misses};
}

void PeriodFinder::NoteStepsApart(PeriodCandidate& candidate) {
  const int64_t apart = candidate.TakeStepsApart();
  if (apart != 0) steps_apart_ = apart;
}

// Of a candidate. Short ones are lost in each layer: it is the longest of late that counts.
void PeriodFinder::OnLoss(int64_t window) {
  if (window < last_loss_.window &&
      tokens_.now() - last_loss_.tick <= kMaxCandidatePeriods * last_loss_.window)
    return;
  last_loss_.Again(window, tokens_.now(), steps_apart_);
}

// The matches that the confirmation of a period takes.
int64_t PeriodFinder::Evidence(int64_t length) const {
  return std::max({kMinMatches, length / 2, std::min(doubt_, kMaxDoubt * length)});
}

bool PeriodFinder::Repeats(const Challenger& c) const {
  return c.candidate.matched() >= Evidence(Lag(c)) && c.candidate.IsIteration(tokens_);
}

// The candidate repeats; is it better than what is confirmed? A longer one is so only once a whole round of
// it has come again: where two jobs take turns at will, half a round of some turns does by chance. Multiples
// of the length, give or take the shift of noise, are the same cycle unless the tracker matches hardly at all, or
// misses a little in each round of one that does not.
bool PeriodFinder::BeatsTracker(const Challenger& c) const {
  if (given_up_ || !tokens_.rules().challenge) return true;
  const int64_t length = tracker_.length();
  const int64_t matched = c.candidate.matched();
  if (kChallengeParts * matched < (kChallengeParts + 1) * length) return false;
  if (Lag(c) > length && matched < Lag(c)) return false;
  const int64_t misses = tracker_.misses - c.tracker_misses;
  const int64_t beside = Lag(c) % length;
  const bool multiple = std::min(beside, length - beside) <= TokenFollower::kMaxShift;
  const bool longer = Lag(c) - length > TokenFollower::kMaxShift;
  const bool exact = longer && c.candidate.misses() == 0 && matched >= kExactRounds * Lag(c);
  const int64_t tolerated = exact      ? kExactPerMiss
                            : multiple ? kTrackerMatchesPerMiss
                                       : PeriodCandidate::kMatchesPerMiss;
  return misses * tolerated > tokens_.now() - c.judged_from && misses > 2 * c.candidate.misses();
}

void PeriodFinder::Confirm(int64_t lag) {
  const int64_t now = tokens_.now();
  confirmed_ = Period{.length = lag, .found_at = Tick(now)};
  tokens_.Reserve(2 * lag + 2 * RecentTokens::kMargin);
  tracker_ = {
      .begin = now - lag, .end = now, .cap = TokenFollower::CreditCap(lag), .price = kTrackerMatchesPerMiss};
  tracker_.Restart(now - lag, now);
  ++iterations_;
  rounds_ = 0;
  round_start_ = last_round_ = lost_at_ = now;
  round_whole_ = true;
  round_misses_ = 0;
  given_up_ = judged_ = in_doubt_ = false;

  // Longer candidates go on, as challengers of this period.
  int kept = 0;
  for (int i = 0; i < live_candidates_; ++i) {
    if (Lag(candidates_[i]) <= lag) continue;
    candidates_[kept++] = {candidates_[i].candidate, now, 0};
  }
  live_candidates_ = kept;
}

}  // namespace reprise::profiler
