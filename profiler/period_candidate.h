// A distance at which the sequence may repeat, while it is followed: what has matched so far, and whether the rounds leave
// something behind that is freed later, as micro-batches do with their gradients.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/recent_tokens.h"
#include "profiler/token_follower.h"

namespace reprise::profiler {

class PeriodCandidate {
 public:
  // The noise it tolerates: one miss in so many tokens, 3 %, saved up to 3 % of a period. One noisy block costs two misses,
  // when it comes and when it is looked back at.
  static constexpr int64_t kMatchesPerMiss = 32;
  // One that accumulates is held back for so many periods: then the micro-batches are so many that a plan for them pays.
  static constexpr int64_t kHoldBackPeriods = 32;

  PeriodCandidate() = default;
  // Nothing where the latest tokens are not those `lag` before, but others with the same hash. lag >= kMinPeriod.
  static std::optional<PeriodCandidate> At(int64_t lag, const RecentTokens& tokens);

  // Takes the latest token. True when it matched.
  bool Follow(const RecentTokens& tokens);
  bool lost() const { return follower_.state == TokenFollower::State::kLost; }

  int64_t Lag(const RecentTokens& tokens) const { return tokens.now() - follower_.ref - follower_.unmatched; }
  int64_t start() const { return start_; }      // its first token that matched
  int64_t matched() const { return matched_; }  // tokens that matched in level too
  int64_t misses() const { return follower_.misses; }
  int64_t window() const { return window_; }  // the tokens of one round, when it was proposed

  // Whether what has matched is an iteration: it swings enough, and leaves nothing behind or was held back long enough.
  bool IsIteration(const RecentTokens& tokens) const;
  // Whether its rounds leave something behind that is freed all at once later. Where that was freed and nothing has come
  // again since, one does not know.
  bool Accumulates(const RecentTokens& tokens) const;
  // Looks, once, at what came before its first token; true where it has just done so. Before it is confirmed.
  bool LookBack(const RecentTokens& tokens);
  // The distance of the last two places at which what had been left behind was freed: that of steps. Told once, else 0.
  int64_t TakeStepsApart();

 private:
  static constexpr int64_t kNever = INT64_MIN;
  static constexpr uint32_t kNoLevel = UINT32_MAX;

  void Count(const RecentTokens& tokens, int64_t tick, int64_t past_tick);
  void CountExcess(const RecentTokens& tokens, int64_t tick, int64_t past_tick);
  void Lower(const RecentTokens& tokens, int64_t tick, int64_t past_tick);
  void BeginStep(int64_t tick);
  bool Released(const RecentTokens& tokens, int64_t first) const;

  TokenFollower follower_;
  int64_t start_ = 0;
  int64_t matched_ = 0;
  int64_t window_ = 0;
  uint32_t lowest_ = 0;  // their levels in the present round, and the largest swing in any
  uint32_t highest_ = 0;
  uint32_t swing_ = 0;
  int64_t step_ = kNever;       // when what had been left behind was freed the last time
  int64_t steps_apart_ = 0;     // not told yet
  int64_t matched_before_ = 0;  // tokens that had matched until then
  uint32_t trough_ = kNoLevel;  // since then, lowest level of any matched token
  uint32_t floor_ = kNoLevel;   // and of any token they were matched with
  uint32_t excess_ = 0;         // the most that a level was above that of the token matched, and the latest
  uint32_t last_excess_ = 0;
  bool released_ = false;  // it fell from all to nothing at one token
  bool examined_ = false;  // what was before its first token
  bool fallen_ = false;    // the latest level was below that of the token matched
};

}  // namespace reprise::profiler
