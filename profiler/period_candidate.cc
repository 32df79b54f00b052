#include "profiler/period_candidate.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace reprise::profiler {
namespace {

// How far a new candidate looks back to find where its repetition began: among repeated layers the first gram
// that tells the right distance may come late, and what accumulates shows only from the beginning.
constexpr int64_t kLookBack = 64;
static_assert(2 * kLookBack <= RecentTokens::kMargin);

// A period swings by at least the largest swing seen divided by this, within one round: an optimizer's loop
// does not, and layers that climb too little to be noticed by the level test do so only over many of them.
constexpr uint32_t kSwingParts = 2;

// Accumulation: the earliest round that matches began lower than any round after it, by more than this part
// of the largest swing. So the rounds leave something behind that is not freed yet: gradients, which the
// whole step frees. Where a step frees them behind its first forward pass none begins lower, but the first backward
// pass goes on lower than the second one.
constexpr uint32_t kAccumulationParts = 16;
// ... unless all of what had been left behind was freed at one place of the round, but for this part. That is
// an iteration that frees its gradients after the forward pass; a micro-batch adds its gradients to those
// left behind one by one, until their sum is no longer more than the last time.
constexpr uint32_t kReleaseParts = 8;

// Whether a token is at a much lower level than the one that it matches.
bool HasFallen(const RecentTokens& tokens, int64_t tick, int64_t past_tick) {
  const uint32_t level = tokens.At(tick).level;
  const uint32_t past = tokens.At(past_tick).level;
  return past > level && past - level > tokens.Swing() / kAccumulationParts;
}

// The distance nearest to `lag` at which `tick` and those before it match, as a step has a few tokens more than its
// micro-batches; 0: none.
int64_t LagNear(const RecentTokens& tokens, int64_t lag, int64_t tick) {
  for (int64_t step = 0; step <= 2 * TokenFollower::kMaxShift; ++step) {
    const int64_t near = lag + TokenFollower::ShiftAt(step);
    if (near < kMinPeriod) continue;
    const int64_t needed = TokenFollower::kResyncRun + std::abs(near - lag);
    int64_t run = 0;
    while (run < needed && tokens.Same(tick - run, tick - near - run)) ++run;
    if (run == needed) return near;
  }
  return 0;
}

}  // namespace

std::optional<PeriodCandidate> PeriodCandidate::At(int64_t lag, const RecentTokens& tokens) {
  const int64_t tick = tokens.now() - 1;
  const int64_t most = std::min(
      {kLookBack, tick - lag + 1, tokens.capacity() - lag - RecentTokens::kMargin + RecentTokens::kGram});
  int64_t run = 0;
  while (run < most && tokens.Same(tick - run, tick - run - lag)) ++run;
  if (run < RecentTokens::kGram) return std::nullopt;
  PeriodCandidate c;
  c.window_ = lag;
  for (int64_t past = tick - lag - run + 1; past <= tick - lag; ++past) c.Count(tokens, past + lag, past);
  c.follower_ = {.ref = tokens.now() - lag,
                 .begin = -TokenFollower::kFar,
                 .end = TokenFollower::kFar,
                 .credit = TokenFollower::kFirstCredit,
                 .cap = TokenFollower::CreditCap(lag),
                 .price = kMatchesPerMiss,
                 .credited = tokens.now(),
                 .state = TokenFollower::State::kInStep};
  c.start_ = tokens.now() - run;
  return c;
}

bool PeriodCandidate::Follow(const RecentTokens& tokens) {
  if (!follower_.Follow(tokens)) return false;
  Count(tokens, tokens.now() - 1, follower_.ref - 1);
  return true;
}

void PeriodCandidate::Count(const RecentTokens& tokens, int64_t tick, int64_t past_tick) {
  const uint32_t level = tokens.At(tick).level;
  const bool fallen = HasFallen(tokens, tick, past_tick);
  if (fallen && !std::exchange(fallen_, true)) BeginStep(tick);
  fallen_ = fallen;
  if (past_tick >= step_) Lower(tokens, tick, past_tick);
  CountExcess(tokens, tick, past_tick);
  if (!tokens.SameLevel(level, tokens.At(past_tick).level)) return;
  if (matched_++ % window_ == 0) lowest_ = highest_ = level;
  lowest_ = std::min(lowest_, level);
  highest_ = std::max(highest_, level);
  swing_ = std::max(swing_, highest_ - lowest_);
}

// By how much the rounds leave more behind than the one before, and whether all of that was freed at one token.
void PeriodCandidate::CountExcess(const RecentTokens& tokens, int64_t tick, int64_t past_tick) {
  const uint32_t level = tokens.At(tick).level;
  const uint32_t past = tokens.At(past_tick).level;
  const uint32_t excess = level > past ? level - past : 0;
  excess_ = std::max(excess_, excess);
  if (excess_ > tokens.Swing() / kAccumulationParts && excess < excess_ / kReleaseParts &&
      last_excess_ > excess_ - excess_ / kReleaseParts) {
    released_ = true;
  }
  last_excess_ = excess;
}

// The lowest levels of tokens that have come again.
void PeriodCandidate::Lower(const RecentTokens& tokens, int64_t tick, int64_t past_tick) {
  trough_ = std::min(trough_, tokens.At(tick).level);
  floor_ = std::min(floor_, tokens.At(past_tick).level);
}

// What the rounds had left behind was freed: what they come to is judged from here on. Where that happens
// the second time, the distance is that of the steps.
void PeriodCandidate::BeginStep(int64_t tick) {
  if (step_ != kNever) steps_apart_ = tick - step_;
  step_ = tick;
  matched_before_ = matched_;
  trough_ = floor_ = kNoLevel;
  excess_ = last_excess_ = 0;
  released_ = false;
}

int64_t PeriodCandidate::TakeStepsApart() { return std::exchange(steps_apart_, 0); }

// Whether it is a micro-batch that was found in the middle of its step, so that the tokens before
// its first one match as well. Those that match one by one belong to it. Of others, from which a few tokens part it, it only
// counts whether what had been left behind was freed among them: where they match at a lower level they may be a job's
// first steps. Once a candidate, O(1) a token that is held back.
bool PeriodCandidate::LookBack(const RecentTokens& tokens) {
  if (std::exchange(examined_, true)) return false;
  if (step_ > start_) return true;
  int64_t lag = window_;
  const int64_t oldest = std::max<int64_t>(0, tokens.now() - tokens.capacity() + RecentTokens::kMargin);
  const int64_t farthest = std::max(start_ - kHoldBackPeriods * lag, oldest + lag);
  bool of_candidate = true;
  int64_t unmatched = 0;
  int64_t first = start_;
  int64_t step = kNever;  // the first of the latest run of tokens that have fallen
  for (int64_t tick = start_ - 1; tick >= farthest; --tick) {
    if (!tokens.Same(tick, tick - lag)) {
      of_candidate = false;
      const int64_t near = LagNear(tokens, lag, tick);
      if (near == 0 && ++unmatched > TokenFollower::kMaxShift) break;
      if (near == 0) continue;
      lag = near;
      unmatched = 0;
    }
    if (HasFallen(tokens, tick, tick - lag)) {
      step = tick;
    } else if (step != kNever) {
      break;
    }
    if (!of_candidate) continue;
    Lower(tokens, tick, tick - lag);
    first = tick;
  }
  released_ = Released(tokens, first);
  if (step == kNever) return true;
  step_ = step;
  trough_ = floor_ = kNoLevel;
  for (int64_t tick = step + Lag(tokens); tick < tokens.now(); ++tick)
    Lower(tokens, tick, tick - Lag(tokens));
  return true;
}

// Whether it has, or what comes before its first token, from `first` on.
bool PeriodCandidate::Released(const RecentTokens& tokens, int64_t first) const {
  PeriodCandidate before = *this;
  before.excess_ = before.last_excess_ = 0;
  for (int64_t tick = first; tick < start_; ++tick) before.CountExcess(tokens, tick, tick - window_);
  return before.released_;
}

bool PeriodCandidate::IsIteration(const RecentTokens& tokens) const {
  if (swing_ == 0 || (tokens.rules().swing && swing_ < tokens.Swing() / kSwingParts)) return false;
  return !Accumulates(tokens) || matched_ - matched_before_ >= kHoldBackPeriods * Lag(tokens);
}

bool PeriodCandidate::Accumulates(const RecentTokens& tokens) const {
  if (!tokens.rules().hold_back || released_) return false;
  const uint32_t tolerated = tokens.Swing() / kAccumulationParts;
  return floor_ == kNoLevel || (trough_ > floor_ && trough_ - floor_ > tolerated) ||
         (step_ != kNever && excess_ > tolerated);
}

}  // namespace reprise::profiler
