// Finds the period of a job's allocations online: after how many tokens the sequence repeats.
//
// One token is one allocation of at least the token threshold, by (size, stream); frees move only the live
// level that comes with the next token. The way from token to period:
//
//   rolling hash of the last 8 tokens -> last position with that hash -> candidate (a lag) -> followed token
//   by token, with a little tolerance -> confirmed: half a period of tokens that match in size, stream *and*
//   live level, over a swing of live bytes that is not small against the swings seen -> tracker, which
//   follows the confirmed cycle from then on, counts its rounds, and lets candidates challenge it where it
//   fails.
//
// The tokens are kept in recent_tokens, followed by token_follower, and what has come again is judged in period_candidate; the
// confirmed cycle and what has to be better than it are here. Why each test is there (every constant stands with its reason
// in one of these files):
//
// - Live level (net-zero): a stack of layers repeats too, but climbs.
// - Swing: an optimizer's loop over parameters repeats at one level, but hardly swings.
// - Holding back: a micro-batch repeats and swings, but rests on gradients that the first one left behind. Where these are
//   freed, at the end of a step or behind the next one's first forward pass, a step ends: what the micro-batches come to is
//   judged anew from there, and the distance from one such place to the next is proposed as a period, as an optimizer that
//   allocates nothing leaves no token that would tell it.
// - In doubt: a micro-batch may have been confirmed before its step was over, as nothing in the rest of the step tells it from
//   an iteration. Who serves by it sees that blocks outlive it in the next step (Doubt), and it is judged anew.
//   Here, and while nothing is confirmed, the distance is proposed at which candidates are lost again and again.
// - Challenge: a period found behind an interruption (an evaluation) has the wrong length. Another period is
//   reported only when it matches more than one round of the old cycle and one of its own, and does so where
//   the tracker did not. Where the tracker comes back at its cut again and again, the distance is proposed, as the
//   last gram tells the steps' own behind an evaluation, and the other one of two passes that are alike but for little.
// - Doubt: lengths in random order repeat by chance. Each false alarm doubles the matches asked for.
//
// Cost: O(1) a token. In step with a confirmed period about 60 instructions, no heap allocation, no loop;
// while it searches some hundreds. Memory: 16 bytes a remembered token; remembers Options::initial_tokens at
// first and doubles up to Options::max_tokens (bound: 32 MiB by default), but not while a confirmed period
// goes on matching, nor beyond what the job has held itself (RecentTokens). Threads: none of its own, not synchronised; the caller's lock guards it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "profiler/period_candidate.h"
#include "profiler/period_rules.h"
#include "profiler/recent_tokens.h"
#include "profiler/token_follower.h"

namespace reprise::profiler {

struct Period {
  int64_t length = 0;  // tokens in one iteration, >= PeriodFinder::kMinPeriod
  Tick found_at;       // tokens seen when it was confirmed: the next token has this tick
};

class PeriodFinder {
 public:
  using Rules = PeriodRules;
  struct Options {
    int64_t initial_tokens = int64_t{1} << 12;  // a power of two >= 256
    int64_t max_tokens = int64_t{1} << 21;      // likewise, >= initial_tokens; finds periods up to about half
    Rules rules{};
  };
  static constexpr int64_t kMinPeriod = profiler::kMinPeriod;

  PeriodFinder();
  explicit PeriodFinder(Options options);

  // Takes one token. `live_before` is the sum of the live bytes of the device, blocks of all sizes, just
  // before this allocation. Returns true when a period has just been confirmed: the first one, or one that
  // replaces the one reported last (a multiple of a period that still matches is never reported).
  bool OnAlloc(Bytes bytes, Stream stream, Bytes live_before);

  // The period reported last; it stays when the job leaves it (see in_step).
  const std::optional<Period>& confirmed() const { return confirmed_; }
  // Whether the confirmed period is being judged anew, as it may be a micro-batch's: until it is confirmed again, or another
  // one is.
  bool in_doubt() const { return in_doubt_; }
  // From now on it is: blocks outlive what it says of them.
  void Doubt();
  // Whether the latest token belonged to the confirmed cycle, noise aside.
  bool in_step() const { return confirmed_.has_value() && tracker_.state == TokenFollower::State::kInStep; }
  // Complete iterations seen of the periods confirmed: one at each confirmation, then one a matched round.
  int64_t iterations() const { return iterations_; }
  // Tokens seen: the tick of the next one.
  Tick now() const { return Tick(tokens_.now()); }
  // How many tokens back it can look at present: what a History beside it should hold.
  int64_t capacity() const { return tokens_.capacity(); }

 private:
  static constexpr int64_t kNever = INT64_MIN;
  // Of what may part two rounds of a longer period: the latest, and with which period it was.
  struct Occurrence {
    int64_t window = 0;
    int64_t tick = kNever;

    // Sets `apart`, if that is 0, to how long ago it was the last time, if that was with the same period.
    void Again(int64_t with, int64_t now, int64_t& apart) {
      if (with == window && apart == 0) apart = now - tick;
      window = with;
      tick = now;
    }
  };
  struct Challenger {
    PeriodCandidate candidate;
    int64_t judged_from = 0;  // tokens seen, and the tracker's misses, when it began to challenge
    int64_t tracker_misses = 0;
  };
  // Followed at once: a stack of layers inside a micro-batch inside a step needs three.
  static constexpr int kCandidates = 6;

  int64_t Lag(const Challenger& c) const { return c.candidate.Lag(tokens_); }

  bool RoundDone();
  // `lag`: the distance to the last gram like the latest one, 0 for none.
  bool OffTheFastPath(int64_t lag);
  bool Settled() const;

  void FollowTracker();
  bool Realign();
  void FindCut();
  void FinishRound();
  bool CycleHeld() const;
  void LoseTracker();
  void GiveUp();

  const Challenger* FollowCandidates();
  void Propose(int64_t lag);
  void NoteStepsApart(PeriodCandidate& candidate);
  void OnLoss(int64_t window);
  int64_t Evidence(int64_t length) const;
  bool Repeats(const Challenger& c) const;
  bool BeatsTracker(const Challenger& c) const;
  void Confirm(int64_t lag);

  RecentTokens tokens_;

  // The confirmed cycle.
  TokenFollower tracker_;
  std::optional<Period> confirmed_;
  int64_t iterations_ = 0;
  int64_t rounds_ = 0;           // matched since confirmed
  int64_t last_round_ = 0;       // when the latest one was complete
  int64_t round_start_ = 0;      // where the present round began
  bool round_whole_ = false;     // no interruption in it so far
  int64_t round_misses_ = 0;     // tracker_.misses when it began
  int64_t lost_at_ = 0;          // when it was last lost
  int64_t cut_ = 0;              // the token of least level of the cycle
  int64_t cut_of_ = -1;          // that begins here
  bool given_up_ = true;         // nothing is confirmed, or it has been lost for long
  bool in_doubt_ = false;        // blocks outlived it, and it was not confirmed again since
  bool judged_ = true;           // it has been told whether the confirmation was a false alarm
  int64_t doubted_at_ = kNever;  // when it came into doubt the last time
  int64_t doubt_ = 0;            // matches asked for after false alarms

  Occurrence last_return_;   // the tracker came back at its cut
  Occurrence last_loss_;     // a candidate was lost, with no confirmed period, or one given up or in doubt
  int64_t steps_apart_ = 0;  // a distance to be proposed, or 0

  std::array<Challenger, kCandidates> candidates_;
  int live_candidates_ = 0;  // the first so many are in use
};

}  // namespace reprise::profiler
