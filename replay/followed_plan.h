// A plan that a job follows, or has followed and may come back to: where the job is in it, and how well it still fits.
//
// The engine's lock is held around every call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "replay/matcher.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// A block of a job's start that is no part of the cycle and stays: weights, an optimizer's state.
struct StayingBlock {
  Tick token;  // its number among the job's
  Bytes bytes;
};

// What is planned, or has been.
struct PlannedCycle {
  // Why a plan is asked for.
  enum class Reason : uint8_t { kFound, kChanged, kInTheWay };

  profiler::Period period;  // of it, and when the one that it was found under was confirmed
  uint64_t fingerprint = 0;
  Reason reason = Reason::kFound;
  Tick from{0};    // where the first round of it began, as far as is known
  Tick origin{0};  // of the iteration that is planned
  // The fingerprint of one that has changed, did not repeat exactly, or was its micro-batch.
  uint64_t replaces = 0;

  // Whether it was planned for that period, which may have a stray allocation in it, or be several rounds.
  bool IsOf(const profiler::Period& found) const;
};

// By more than noise: of two cycles that differ by a stray allocation none is inside the other.
bool IsLonger(const profiler::Period& period, const profiler::Period& than);

// The same for the same round, wherever it was cut, and in a later run. (How long what is never freed lives is
// told by the cycle that it was saved with.)
uint64_t FingerprintOf(std::span<const profiler::Slot> cycle);

struct FollowedPlan {
  // One that matches less than this much of what happens is not being followed, where others might be.
  static constexpr double kUsefulShare = 0.9;
  // One that expects less than this much of what comes while it is in step does not tell what comes next: threads allocate
  // at once. (What comes while it is lost is something else, such as an evaluation.)
  static constexpr double kTellingShare = 0.95;
  // What one has live rises and falls by at least this part of its range, or most of that is others'.
  static constexpr int64_t kPartsOfRange = 5;
  // More than this part of its swing where its slots should lie, and it is not followed, but for so many rounds at most: by then
  // it has been laid again, or what lies there has gone. Nor does a job's start, in which blocks come that stay, take longer.
  static constexpr int64_t kPartsInTheWay = 16;
  static constexpr int kRoundsToRest = 4;
  // Rounds shorter than so many allocations are counted as parts of one: what is planned every few milliseconds keeps a core
  // busy.
  static constexpr int64_t kShortRound = 64;

  ServingPlan plan;
  std::unique_ptr<Matcher> matcher;
  PlannedCycle cycle;
  std::vector<StayingBlock> stays;  // from before it, by token
  bool of_earlier_run = false;      // and not yet used in this one
  bool settled = false;             // followed for its first cycle
  bool doubted = false;             // its period may be a micro-batch, or may have been
  bool in_the_way = false;          // something lies where its slots should
  bool takes_too_much = false;      // memory, for streams to run at once, and there is not that much
  int64_t good_rounds = 0;          // in a row
  double matched_share = 1.0;       // of the latest cycle
  double told_share = 1.0;          // the same, of what came while its matcher was in step
  Tick last_used;                   // the token that it has last been followed with
  // So much of what it may have live lies elsewhere, since its latest entry; no longer counted where it is enough.
  Bytes astray;
  // Something lies in its places that it does not know of, and it is not followed (Sequence::Rest).
  bool rests = false;
  int rounds_rested = 0;  // in a row
  int rounds_begun = 0;   // since it was settled
  // The latest begin of a round: when it was, what was live then, and what has come since that was none of its slots.
  Tick round_began;
  Bytes live_at_begin;
  Bytes unexpected;
  Bytes unexpected_before;  // from the begin before until that one
  // About the present cycle: the measures of whether the plan still fits.
  int64_t window_tokens = 0;
  int64_t window_matched = 0;
  int64_t window_lost = 0;  // came while its matcher was not in step
  Bytes window_bytes;
  Bytes window_conflicts;
  // What its matcher had counted when it came into use: while it looks on, a mismatch is none.
  int64_t mismatches_before = 0;
  int64_t times_lost_before = 0;
  // Of an earlier run's: the slots that its matcher saw in the start of the job, by token.
  std::deque<std::pair<Tick, uint32_t>> start_slots;

  // It comes into use. True where it is of an earlier run, and for the first time.
  bool BeginUse();
  // From here on it lies as it was planned.
  void EndFirstCycle();
  // The allocation `token` is its slot, or kNoSlot. True at the end of a cycle, when its measures have been taken.
  bool Count(Tick token, uint32_t slot, Bytes bytes, Stream stream) {
    ++window_tokens;
    if (slot != Matcher::kNoSlot) {
      ++window_matched;
      last_used = token;
    } else {
      unexpected += bytes;
      if (!matcher->InStep(stream)) ++window_lost;
    }
    window_bytes += bytes;
    if (window_tokens < static_cast<int64_t>(plan.slots.size())) return false;
    TakeMeasures();
    return true;
  }

  // Whether the latest cycle matched but for little, or enough to go on.
  bool matches() const;
  bool useful() const { return matched_share >= kUsefulShare; }
  // Whether its free places are worth keeping for its coming slots: it tells what these are, and its range is not for the most
  // part that of blocks which it lies around. Between them others find no room then either, and would be held beside it.
  bool keeps_places() const {
    return told_share >= kTellingShare && plan.swing * kPartsOfRange >= plan.end - plan.begin;
  }
  // Whether it has been good for long.
  bool proven() const;
  // Whether so much lies elsewhere that it is not to be followed before an entry, or so much in its places.
  bool IsAstray() const { return rests || !plan.IsLittle(astray); }
  bool IsMuchInTheWay(Bytes bytes) const { return bytes * kPartsInTheWay > plan.swing; }
  // Whether a round begins with the allocation `token`, which is `slot` and before which `live` was live, and so much has come
  // in the last one that was not planned, or has stayed, that one should look what lies in its places: a walk through all that
  // is live, for which a short round is too short.
  bool ShouldLook(Tick token, uint32_t slot, Bytes live);
  // Whether the period is its own: found again after something else, or another as long?
  bool Serves(const profiler::Period& period, Stream stream) const;
  // Whether what has been there for `age` allocations is there for good, whatever one of so many slots says.
  static bool IsThereForGood(int64_t age, int64_t slots);
  // Whether a block of a slot, one of so many, that has been there for `age` allocations lives for much longer than it says.
  static bool Outlives(const profiler::Slot& slot, int64_t age, int64_t slots);
  // Whether a block that was the token `since` was placed at `offset` by it and lives for much longer than it says. Its present
  // slot is `slot`, of the token before `now`.
  bool Outstays(uint32_t slot, Tick since, Offset offset, Tick now) const;
  // All that it has live may lie elsewhere.
  void Doubt();
  // What was none of its slots while its place was lost, or came while another plan was in use, lies elsewhere. At an entry
  // little of it is still live.
  void CountAstray(bool in_use, uint32_t slot, Bytes bytes, Stream stream) {
    if (slot != Matcher::kNoSlot && plan.slots[slot].entry) {
      astray = Bytes(0);
      return;
    }
    const bool elsewhere = slot == Matcher::kNoSlot ? matcher->Lost(stream) : !in_use;
    if (elsewhere && !IsAstray()) astray += bytes;
  }

  // Of an earlier run's plan, while none is in use: the token was this slot.
  void NoteInStart(Tick token, uint32_t slot);
  // Which slot a token was then; kNoSlot where that is not known, or its first cycle is over.
  uint32_t SlotInStart(Tick token, const profiler::History& history) const;

  // While it has been in use.
  int64_t mismatches() const { return matcher->mismatches() - mismatches_before; }
  int64_t times_lost() const { return matcher->times_lost() - times_lost_before; }

 private:
  void TakeMeasures();
  void RestartCount();
};

}  // namespace reprise::replay
