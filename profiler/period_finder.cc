#include "profiler/period_finder.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace reprise::profiler {
namespace {

// Tokens in a gram. Shorter ones recur by chance inside one layer; longer ones are spoilt by noise more often. The
// rolling hash shifts a token by kGramBits a step, so that it has left the 64 bits after exactly kGram.
constexpr int64_t kGram = 8;
constexpr int kGramBits = 64 / kGram;

// A follower out of step searches this far to either side. Noise shifts by one or two; a layer more or less
// is another sequence and must not be bridged.
constexpr int64_t kMaxShift = 16;
// Equal tokens in a row that put a follower back in step, and one more for each token of the shift. Fewer are
// found anywhere among repeated layers.
constexpr int64_t kResyncRun = 4;
// The noise tolerated in a candidate: one miss in so many tokens, 3 %, saved up to 3 % of a period. One noisy
// block costs two misses, when it comes and when it is looked back at.
constexpr int64_t kMatchesPerMiss = 32;
// The tracker has been confirmed and tolerates more, 12 %: what it loses too early would be taken for a new period.
constexpr int64_t kTrackerMatchesPerMiss = 8;
// Misses granted to a candidate before it has shown anything.
constexpr int64_t kFirstCredit = 2 * kMatchesPerMiss;

// How far a new candidate looks back to find where its repetition began: among repeated layers the first gram
// that tells the right distance may come late, and what accumulates shows only from the beginning.
constexpr int64_t kLookBack = 64;
// A candidate that has repeated so often unconfirmed is dropped, to be judged afresh with the swings seen by then.
constexpr int64_t kMaxCandidatePeriods = 64;

// A short period repeats by chance: its confirmation takes so many matches at least.
constexpr int64_t kMinMatches = 48;

// Two levels are the same when they differ by less than this part of the largest swing. Each of L layers
// climbs by 1/L of the swing, and models have fewer than 64 equal ones in a row on one device; small blocks
// and slow leaks are far below it.
constexpr uint32_t kLevelParts = 64;
// ... or by this much, whatever the swing: 64 KiB, for the small blocks that are no tokens.
constexpr uint32_t kLevelPages = 16;
// A period swings by at least the largest swing seen divided by this, within one round: an optimizer's loop
// does not, and layers that climb too little to be noticed by the level test do so only over many of them.
constexpr uint32_t kSwingParts = 2;
// A swing larger than all that follow (an algorithm search that takes all free memory, once) must not block
// confirmations for ever, yet the largest of an iteration has to be remembered for at least one iteration. So
// it is kept for the present epoch and the one before; epochs end when the number of tokens has doubled, from
// kFirstEpoch to kLastEpoch.
constexpr int64_t kFirstEpoch = 64;
constexpr int64_t kLastEpoch = int64_t{1} << 18;

// Accumulation: the earliest round that matches began lower than any round after it, by more than this part
// of the largest swing. So the rounds leave something behind that is not freed yet: gradients, which the
// whole step frees. Where a step frees them behind its first forward pass none begins lower, but the first backward
// pass goes on lower than the second one.
constexpr uint32_t kAccumulationParts = 16;
// ... unless all of what had been left behind was freed at one place of the round, but for this part. That is
// an iteration that frees its gradients after the forward pass; a micro-batch adds its gradients to those
// left behind one by one, until their sum is no longer more than the last time.
constexpr uint32_t kReleaseParts = 8;
// It is held back for so many periods: then the micro-batches are so many that a plan for them pays.
constexpr int64_t kHoldBackPeriods = 32;

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
// A reference must not be overwritten while it is looked at; nothing is looked at farther beside it than this.
constexpr int64_t kRingMargin = 2 * kLookBack;

// Levels are kept in pages of 4 KiB, in 32 bits: 16 TiB.
constexpr int kPageBits = 12;

constexpr int64_t kFar = INT64_MAX / 4;

uint64_t Mix(Bytes bytes, Stream stream) {
  uint64_t x = static_cast<uint64_t>(bytes.count()) + std::rotl(static_cast<uint64_t>(stream), 40);
  x *= 0x9E3779B97F4A7C15u;
  return x ^ (x >> 32);
}

uint32_t Difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

// The most tolerance a follower of a period of `length` tokens saves up.
int64_t CreditCap(int64_t length) { return std::max(length, kFirstCredit); }

}  // namespace

PeriodFinder::PeriodFinder() : PeriodFinder(Options()) {}

PeriodFinder::PeriodFinder(Options options)
    : ring_(static_cast<size_t>(std::max(options.initial_tokens, 2 * kRingMargin))),
      grams_(ring_.size()),
      gram_shift_(32 - std::countr_zero(ring_.size())),
      mask_(capacity() - 1),
      max_tokens_(options.max_tokens),
      rules_(options.rules),
      checkpoint_(kFirstEpoch),
      epoch_end_(kFirstEpoch) {}

// In step it calls nothing, and what it calls otherwise comes last: the compiler saves no registers for either.
bool PeriodFinder::OnAlloc(Bytes bytes, Stream stream, Bytes live_before) {
  const uint64_t mixed = Mix(bytes, stream);
  const Token token{static_cast<uint32_t>(mixed), static_cast<uint32_t>(live_before.count() >> kPageBits)};
  ring_[static_cast<size_t>(now_ & mask_)] = token;

  gram_ = (gram_ << kGramBits) + mixed;
  const auto fingerprint = static_cast<uint32_t>(gram_ >> 32);
  Gram& gram = GramAt(fingerprint);
  const Gram last = gram;
  gram = {fingerprint, static_cast<uint32_t>(now_)};

  if (token.level > peak_) peak_ = token.level;
  if (peak_ - token.level > fall_) fall_ = peak_ - token.level;

  if (++now_ != checkpoint_ && tracker_.state == State::kInStep && live_candidates_ == 0 &&
      At(tracker_.ref).hash == token.hash) {
    if (++tracker_.ref == tracker_.end) return RoundDone();
    return false;
  }
  return OffTheFastPath(last.fingerprint == fingerprint ? static_cast<uint32_t>(now_ - 1) - last.position
                                                        : 0);
}

[[gnu::noinline]] bool PeriodFinder::RoundDone() {
  tracker_.ref = tracker_.begin;
  FinishRound();
  return false;
}

[[gnu::noinline]] bool PeriodFinder::OffTheFastPath(int64_t lag) {
  if (now_ == checkpoint_) Checkpoint();
  if (confirmed_) FollowTracker();
  const Candidate* best = FollowCandidates();
  if (best != nullptr) {
    Confirm(*best);
    return true;
  }
  if (steps_apart_ != 0) Propose(std::exchange(steps_apart_, 0));
  if (in_step()) return false;  // what the tracker matches needs no other explanation
  Propose(lag);
  return false;
}

// ---- following

// The reference of a follower is cyclic; one step past either side comes back on the other.
int64_t PeriodFinder::Follower::Wrap(int64_t position) const {
  if (position >= end) return position - (end - begin);
  if (position < begin) return position + (end - begin);
  return position;
}

// Takes the latest token. True when it matched the reference, which is then the one before f.ref.
bool PeriodFinder::Follow(Follower& f) const {
  if (f.state == State::kLost) return false;
  if (f.state == State::kInStep) {
    if (At(f.ref).hash == At(now_ - 1).hash) {
      f.ref = f.Wrap(f.ref + 1);
      return true;
    }
    f.state = State::kSearching;
  }
  ++f.unmatched;
  // The misses it can afford. Half of the tokens since, less the run, is the least that a late find would cost.
  const int64_t affordable = std::min(f.cap, f.credit + now_ - f.credited) / f.price;
  if (Resynchronise(f, affordable)) return true;
  if (affordable == 0 || f.unmatched > 2 * std::min(affordable, kMaxShift) + kResyncRun) {
    f.state = State::kLost;
    f.misses += f.unmatched;
    f.unmatched = 0;
  }
  return false;
}

// Looks for the nearest reference at which the latest tokens match. Tokens inserted now shift the reference
// back, tokens that did not come shift it ahead, a changed token leaves it. The farther the shift, the longer
// the run that has to show it: repeated layers offer many.
bool PeriodFinder::Resynchronise(Follower& f, int64_t affordable) const {
  if (!rules_.resynchronise) return false;
  const int64_t straight = f.ref + f.unmatched - 1;
  const int64_t farthest = std::min({kMaxShift, affordable, f.unmatched - kResyncRun});
  for (int64_t step = 0; step <= 2 * farthest; ++step) {
    const int64_t shift = step % 2 == 0 ? -step / 2 : (step + 1) / 2;
    const int64_t ref = f.Wrap(straight + shift);
    if (now_ - 1 - ref < kMinPeriod) continue;
    const int64_t needed = kResyncRun + std::abs(shift);
    int64_t run = 0;
    while (run < needed && At(f.Wrap(ref - run)).hash == At(now_ - 1 - run).hash) ++run;
    if (run < needed) continue;
    const int64_t misses = std::max<int64_t>({1, f.unmatched - run, std::abs(shift)});
    if (misses > affordable) continue;
    f.credit = std::min(f.cap, f.credit + now_ - f.credited) - f.price * misses;
    f.credited = now_;
    f.misses += misses;
    f.ref = f.Wrap(ref + 1);
    f.unmatched = 0;
    f.state = State::kInStep;
    return true;
  }
  return false;
}

// ---- the tracker: the confirmed cycle

void PeriodFinder::FollowTracker() {
  if (in_doubt_) {
    if (now_ - doubted_at_ == kHoldBackPeriods * confirmed_->length) doubt_ = 0;
    return;
  }
  const int64_t before = tracker_.ref;
  const bool was_lost = tracker_.state == State::kLost;
  if (Follow(tracker_)) {
    if (tracker_.ref < before - (tracker_.end - tracker_.begin) / 2) FinishRound();
  } else if (!Realign()) {
    if (was_lost) ++tracker_.misses;
    if (tracker_.state == State::kLost && !was_lost) LoseTracker();
  }
  if (!given_up_ && now_ - last_round_ > kGiveUpPeriods * (tracker_.end - tracker_.begin)) GiveUp();
}

// Out of step, comes back at the cut, where an interrupted job goes on.
bool PeriodFinder::Realign() {
  if (!CycleHeld()) return false;
  if (cut_of_ != tracker_.begin) FindCut();
  const int64_t last = tracker_.Wrap(cut_ + kGram - 1);
  // The level tells the first micro-batch of a step from the others, and a step from an evaluation.
  if (!SameLevel(At(last).level, At(now_ - 1).level)) return false;
  for (int64_t i = 0; i < kGram; ++i) {
    if (At(tracker_.Wrap(last - i)).hash != At(now_ - 1 - i).hash) return false;
  }
  round_whole_ = false;
  tracker_.ref = tracker_.Wrap(last + 1);
  tracker_.misses += tracker_.unmatched;
  tracker_.unmatched = 0;
  tracker_.credit = tracker_.cap;
  tracker_.credited = now_;
  tracker_.state = State::kInStep;
  last_return_.Again(confirmed_->length, now_, steps_apart_);
  return true;
}

// Once for each cycle that is left: O(1) a token, since a new cycle takes a whole round.
void PeriodFinder::FindCut() {
  cut_of_ = cut_ = tracker_.begin;
  for (int64_t tick = cut_; tick < tracker_.end; ++tick) {
    if (At(tick).level < At(cut_).level) cut_ = tick;
  }
}

// The reference has just gone past the end of the cycle. A round without interruption becomes the reference
// of the next, so that slow changes are followed and the ring never overwrites it. An evaluation's forward
// pass looks like the step's, but not at its level; a short round with something in between that was stepped
// over is longer, and would pass for two.
void PeriodFinder::FinishRound() {
  const int64_t offset = tracker_.ref - tracker_.begin;
  const int64_t boundary = now_ - offset;
  const int64_t matched = boundary - round_start_ - (tracker_.misses - round_misses_);
  if (2 * matched >= tracker_.end - tracker_.begin) {
    ++iterations_;
    ++rounds_;
    given_up_ = false;
    last_round_ = now_;
  }
  const bool same = SameLevel(At(boundary - 1).level, At(tracker_.end - 1).level) || !CycleHeld();
  const int64_t length = tracker_.end - tracker_.begin;
  const bool as_long = kTrackerMatchesPerMiss * std::abs(boundary - round_start_ - length) <= length;
  if (round_whole_ && same && as_long && boundary - round_start_ >= kMinPeriod) {
    tracker_.begin = round_start_;
    tracker_.end = boundary;
    tracker_.ref = round_start_ + offset;
    tracker_.cap = CreditCap(boundary - round_start_);
  }
  round_start_ = boundary;
  round_misses_ = tracker_.misses;
  round_whole_ = true;
  if (!CycleHeld()) LoseTracker();
}

// Whether the ring still holds the cycle, and will until the end of the next round.
bool PeriodFinder::CycleHeld() const {
  return tracker_.begin + capacity() >= now_ + (tracker_.end - tracker_.begin) + kRingMargin;
}

void PeriodFinder::LoseTracker() {
  tracker_.state = State::kLost;
  round_whole_ = false;
  lost_at_ = now_;
}

void PeriodFinder::GiveUp() {
  given_up_ = true;
  if (judged_ || !rules_.doubt) return;
  judged_ = true;
  doubt_ =
      rounds_ < kTrueRounds ? 2 * std::min(std::max(doubt_, Evidence(confirmed_->length)), max_tokens_) : 0;
}

// The steps of which it may be a micro-batch are about as far apart as two doubts, at the same place of each.
void PeriodFinder::Doubt() {
  if (in_doubt_) return;
  in_doubt_ = given_up_ = judged_ = true;
  LoseTracker();
  if (rules_.doubt) doubt_ = std::max(doubt_, kDoubtedRounds * confirmed_->length);
  Propose(confirmed_->length);
  if (doubted_at_ != kNever) Propose(now_ - doubted_at_);
  doubted_at_ = now_;
}

// ---- candidates

// Follows each and drops those that fail. Returns the longest that has just earned its confirmation, or null.
const PeriodFinder::Candidate* PeriodFinder::FollowCandidates() {
  const Candidate* best = nullptr;
  for (int i = 0; i < live_candidates_;) {
    Candidate& c = candidates_[i];
    const bool matched = Follow(c.follower);
    if (matched) Count(c, now_ - 1, c.follower.ref - 1);
    const bool lost = c.follower.state == State::kLost;
    if (lost && given_up_) OnLoss(c.window);
    if (lost || (now_ - c.start > kMaxCandidatePeriods * Lag(c) && !Accumulates(c))) {
      c = candidates_[--live_candidates_];
      continue;
    }
    bool earned = matched && Repeats(c) && BeatsTracker(c);
    if (earned && !std::exchange(c.examined, true)) {
      LookBack(c);
      earned = Repeats(c);
    }
    if (earned && (best == nullptr || Lag(c) > Lag(*best))) best = &c;
    ++i;
  }
  return best;
}

void PeriodFinder::Propose(int64_t lag) {
  if (lag < kMinPeriod || live_candidates_ == kCandidates) return;
  if (lag + kRingMargin > capacity() || 2 * lag + 2 * kRingMargin > max_tokens_) return;
  for (int i = 0; i < live_candidates_; ++i) {
    if (Lag(candidates_[i]) == lag) return;
  }
  const int64_t tick = now_ - 1;
  const int64_t most = std::min({kLookBack, tick - lag + 1, capacity() - lag - kRingMargin + kGram});
  Candidate c;
  c.window = lag;
  int64_t run = 0;
  while (run < most && At(tick - run).hash == At(tick - run - lag).hash) ++run;
  if (run < kGram) return;  // another gram with the same hash
  for (int64_t past = tick - lag - run + 1; past <= tick - lag; ++past) Count(c, past + lag, past);
  c.follower = {.ref = now_ - lag,
                .begin = -kFar,
                .end = kFar,
                .credit = kFirstCredit,
                .cap = CreditCap(lag),
                .price = kMatchesPerMiss,
                .credited = now_,
                .state = State::kInStep};
  c.start = now_ - run;
  c.judged_from = now_;
  c.tracker_misses = tracker_.misses;
  candidates_[live_candidates_++] = c;
}

void PeriodFinder::Count(Candidate& c, int64_t tick, int64_t past_tick) {
  const Token& token = At(tick);
  const bool fallen = HasFallen(tick, past_tick);
  if (fallen && !std::exchange(c.fallen, true)) BeginStep(c, tick);
  c.fallen = fallen;
  if (past_tick >= c.step) Lower(c, tick, past_tick);
  CountExcess(c, tick, past_tick);
  if (!SameLevel(token.level, At(past_tick).level)) return;
  if (c.matched++ % c.window == 0) c.lowest = c.highest = token.level;
  c.lowest = std::min(c.lowest, token.level);
  c.highest = std::max(c.highest, token.level);
  c.swing = std::max(c.swing, c.highest - c.lowest);
}

// By how much the rounds leave more behind than the one before, and whether all of that was freed at one token.
void PeriodFinder::CountExcess(Candidate& c, int64_t tick, int64_t past_tick) const {
  const uint32_t level = At(tick).level;
  const uint32_t past = At(past_tick).level;
  const uint32_t excess = level > past ? level - past : 0;
  c.excess = std::max(c.excess, excess);
  if (c.excess > Swing() / kAccumulationParts && excess < c.excess / kReleaseParts &&
      c.last_excess > c.excess - c.excess / kReleaseParts) {
    c.released = true;
  }
  c.last_excess = excess;
}

// The lowest levels of tokens that have come again.
void PeriodFinder::Lower(Candidate& c, int64_t tick, int64_t past_tick) const {
  c.trough = std::min(c.trough, At(tick).level);
  c.floor = std::min(c.floor, At(past_tick).level);
}

// Before it is confirmed: whether it is a micro-batch that was found in the middle of its step, so that the tokens before
// its first one match as well. Those that match one by one belong to it. Of others, from which a few tokens part it, it only
// counts whether what had been left behind was freed among them: where they match at a lower level they may be a job's
// first steps. Once a candidate, O(1) a token that is held back.
void PeriodFinder::LookBack(Candidate& c) const {
  if (c.step > c.start) return;
  int64_t lag = c.window;
  const int64_t oldest = std::max<int64_t>(0, now_ - capacity() + kRingMargin);
  const int64_t farthest = std::max(c.start - kHoldBackPeriods * lag, oldest + lag);
  bool of_candidate = true;
  int64_t unmatched = 0;
  int64_t first = c.start;
  int64_t step = kNever;  // the first of the latest run of tokens that have fallen
  for (int64_t tick = c.start - 1; tick >= farthest; --tick) {
    if (At(tick).hash != At(tick - lag).hash) {
      of_candidate = false;
      const int64_t near = LagNear(lag, tick);
      if (near == 0 && ++unmatched > kMaxShift) break;
      if (near == 0) continue;
      lag = near;
      unmatched = 0;
    }
    if (HasFallen(tick, tick - lag)) {
      step = tick;
    } else if (step != kNever) {
      break;
    }
    if (!of_candidate) continue;
    Lower(c, tick, tick - lag);
    first = tick;
  }
  Candidate before = c;
  before.excess = before.last_excess = 0;
  for (int64_t tick = first; tick < c.start; ++tick) CountExcess(before, tick, tick - c.window);
  c.released = before.released;
  if (step == kNever) return;
  c.step = step;
  c.trough = c.floor = kNoLevel;
  for (int64_t tick = step + Lag(c); tick < now_; ++tick) Lower(c, tick, tick - Lag(c));
}

// The distance nearest to `lag` at which `tick` and those before it match, as a step has a few tokens more than its
// micro-batches; 0: none.
int64_t PeriodFinder::LagNear(int64_t lag, int64_t tick) const {
  for (int64_t step = 0; step <= 2 * kMaxShift; ++step) {
    const int64_t shift = step % 2 == 0 ? -step / 2 : (step + 1) / 2;
    if (lag + shift < kMinPeriod) continue;
    const int64_t needed = kResyncRun + std::abs(shift);
    int64_t run = 0;
    while (run < needed && At(tick - run).hash == At(tick - lag - shift - run).hash) ++run;
    if (run == needed) return lag + shift;
  }
  return 0;
}

// Whether a token is at a much lower level than the one that it matches.
bool PeriodFinder::HasFallen(int64_t tick, int64_t past_tick) const {
  const uint32_t level = At(tick).level;
  const uint32_t past = At(past_tick).level;
  return past > level && past - level > Swing() / kAccumulationParts;
}

// What the rounds had left behind was freed: what they come to is judged from here on. Where that happens
// the second time, the distance is that of the steps.
void PeriodFinder::BeginStep(Candidate& c, int64_t tick) {
  if (c.step != kNever) steps_apart_ = tick - c.step;
  c.step = tick;
  c.matched_before = c.matched;
  c.trough = c.floor = kNoLevel;
  c.excess = c.last_excess = 0;
  c.released = false;
}

// Of a candidate. Short ones are lost in each layer: it is the longest of late that counts.
void PeriodFinder::OnLoss(int64_t window) {
  if (window < last_loss_.window && now_ - last_loss_.tick <= kMaxCandidatePeriods * last_loss_.window)
    return;
  last_loss_.Again(window, now_, steps_apart_);
}

bool PeriodFinder::SameLevel(uint32_t a, uint32_t b) const {
  return !rules_.level || Difference(a, b) <= std::max(Swing() / kLevelParts, kLevelPages);
}

// The matches that the confirmation of a period takes.
int64_t PeriodFinder::Evidence(int64_t length) const {
  return std::max({kMinMatches, length / 2, std::min(doubt_, kMaxDoubt * length)});
}

bool PeriodFinder::Repeats(const Candidate& c) const {
  const int64_t lag = Lag(c);
  if (c.matched < Evidence(lag)) return false;
  if (c.swing == 0 || (rules_.swing && c.swing < Swing() / kSwingParts)) return false;
  return !Accumulates(c) || c.matched - c.matched_before >= kHoldBackPeriods * lag;
}

// Its rounds leave something behind that is freed all at once later. Where that was freed and nothing has come
// again since, one does not know.
bool PeriodFinder::Accumulates(const Candidate& c) const {
  if (!rules_.hold_back || c.released) return false;
  const uint32_t tolerated = Swing() / kAccumulationParts;
  return c.floor == kNoLevel || (c.trough > c.floor && c.trough - c.floor > tolerated) ||
         (c.step != kNever && c.excess > tolerated);
}

// The candidate repeats; is it better than what is confirmed? A longer one is so only once a whole round of
// it has come again: where two jobs take turns at will, half a round of some turns does by chance. Multiples
// of the length, give or take the shift of noise, are the same cycle unless the tracker matches hardly at all, or
// misses a little in each round of one that does not.
bool PeriodFinder::BeatsTracker(const Candidate& c) const {
  if (given_up_ || !rules_.challenge) return true;
  const int64_t length = tracker_.end - tracker_.begin;
  if (kChallengeParts * c.matched < (kChallengeParts + 1) * length) return false;
  if (Lag(c) > length && c.matched < Lag(c)) return false;
  const int64_t misses = tracker_.misses - c.tracker_misses;
  const int64_t beside = Lag(c) % length;
  const bool multiple = std::min(beside, length - beside) <= kMaxShift;
  const bool longer = Lag(c) - length > kMaxShift;
  const bool exact = longer && c.follower.misses == 0 && c.matched >= kExactRounds * Lag(c);
  const int64_t tolerated = exact ? kExactPerMiss : multiple ? kTrackerMatchesPerMiss : kMatchesPerMiss;
  return misses * tolerated > now_ - c.judged_from && misses > 2 * c.follower.misses;
}

void PeriodFinder::Confirm(const Candidate& c) {
  const int64_t lag = Lag(c);
  confirmed_ = Period{.length = lag, .found_at = Tick(now_)};
  while (capacity() < 2 * lag + 2 * kRingMargin && capacity() < max_tokens_) Grow();
  tracker_ = {.ref = now_ - lag,
              .begin = now_ - lag,
              .end = now_,
              .credit = CreditCap(lag),
              .cap = CreditCap(lag),
              .price = kTrackerMatchesPerMiss,
              .credited = now_,
              .state = State::kInStep};
  ++iterations_;
  rounds_ = 0;
  round_start_ = last_round_ = lost_at_ = now_;
  round_whole_ = true;
  round_misses_ = 0;
  given_up_ = judged_ = in_doubt_ = false;

  // Longer candidates go on, as challengers of this period.
  int kept = 0;
  for (int i = 0; i < live_candidates_; ++i) {
    if (Lag(candidates_[i]) <= lag) continue;
    candidates_[kept] = candidates_[i];
    candidates_[kept].judged_from = now_;
    candidates_[kept++].tracker_misses = 0;
  }
  live_candidates_ = kept;
}

// ---- rare

void PeriodFinder::Checkpoint() {
  if (now_ == epoch_end_) {
    previous_fall_ = fall_;
    fall_ = 0;
    peak_ = 0;
    epoch_end_ += std::min(epoch_end_, kLastEpoch);
  }
  const bool settled = !given_up_ && (now_ - lost_at_ >= capacity() / 2 ||
                                      capacity() >= kPeriodsRemembered * (tracker_.end - tracker_.begin));
  if ((now_ & mask_) == 0 && !settled && capacity() < max_tokens_) Grow();
  checkpoint_ = std::min(epoch_end_, (now_ & ~mask_) + capacity());
}

void PeriodFinder::Grow() {
  std::vector<Token> ring(2 * ring_.size());
  const int64_t mask = static_cast<int64_t>(ring.size()) - 1;
  for (int64_t tick = std::max<int64_t>(0, now_ - capacity()); tick < now_; ++tick) {
    ring[static_cast<size_t>(tick & mask)] = At(tick);
  }
  ring_ = std::move(ring);
  mask_ = mask;
  std::vector<Gram> grams(ring_.size());
  std::swap(grams, grams_);
  --gram_shift_;
  for (const Gram& gram : grams) {
    if (gram.fingerprint != 0) GramAt(gram.fingerprint) = gram;
  }
}

}  // namespace reprise::profiler
