// One sequence of allocations: finds its iteration, asks for a plan, and follows it.
//
// Jobs vary, so it keeps a set of plans: the one in use and a few that were followed before, whose matchers
// look on. When the job has left the one in use and four allocations say that it has come back to another,
// that one is in use again; the same when a longer one is in step again, from an entry on. All are laid into the one arena.
//
// Where more than a little of what a plan has live may lie elsewhere, because it had lost its place or another one was in
// use, it is followed again from an entry on: where a round has just begun or little of the cycle is live. Anywhere else
// what it has live would not lie in its places, and memory be held for both.
//
// A micro-batch may be found and planned before its step is over. What the first one of the next step leaves is then in the
// way of all that follow. So where a plan's places are held by blocks of its own, it rests until its period is confirmed anew
// or the step's has been found and planned. Where anything else has come to stay there, such as the optimizer's state, it rests
// until it has been laid around that. This is looked for when a round begins: block after block that finds its place taken
// would take memory beside what is held for the plan.
//
// When it plans again (drift): a round that matches the plan badly and repeats exactly is another cycle than
// the one planned, though it may be as long; a round that matches and finds its places taken is to be laid
// around what is in the way. Either at most once in so many rounds, which double each time and fall back once
// a plan has been good for long: a job that goes on drifting is left to the arena more and more.
//
// A device has one for all that is allocated on it and, where several threads allocate at once and their
// order is never the same twice, one for each of them (engine.h).
//
// Not thread-safe: the engine's lock is held around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "replay/followed_plan.h"
#include "replay/matcher.h"
#include "replay/obstacles.h"
#include "replay/pending_plan.h"
#include "replay/planning.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

class Sequence {
 public:
  // Each may be taken away, to show what it is for; a job has no reason to.
  struct Rules {
    bool plan_set = true;     // plans followed before are kept and come back
    bool replan = true;       // for a cycle that has changed without becoming another period
    bool lay_again = true;    // around what is in the way of a plan that is followed
    bool first_cycle = true;  // a plan's first cycle is laid around what is left of the one before
    bool entries = true;      // a plan that was left is followed again from an entry on
    bool turns = true;   // what a cycle has at its end keeps out of the way of plans that it takes turns with
    bool beside = true;  // a plan that finds no room among what stays lies in a range of its own (laying.h)
    bool lag = true;     // what several streams do at once stays possible (stream_lag.h)
    bool keep_places = true;  // false: every plan that is followed keeps its free places
    bool rest = true;  // a plan in whose places something stays rests until it, or its period, is made anew
  };
  explicit Sequence(profiler::PeriodFinder::Options options, Rules rules) : finder_(options), rules_(rules) {}

  // What one allocation came to. Filled in place: returned, its small fields would be read as one word just
  // after they were written one by one, which stalls.
  struct Step {
    Tick token;
    uint32_t slot = Matcher::kNoSlot;  // of the plan in use, or of the one to adopt
    bool at_cut = false;               // a solved plan is in step and `slot` its cut: Adopt, or Drop
    bool settled = false;              // the plan in use has just been followed for a first cycle
    bool resumed = false;              // from here on a plan of an earlier run is in use, for the first time
    bool wants_plan = false;           // IterationToPlan may have something
    uint32_t round_began = Matcher::kNoSlot;  // with this slot, and something may be in the plan's way: Rest
  };
  // Takes in one allocation; `live` are the live bytes before it, of everything that this sequence sees.
  void OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live, Step& step);
  void OnFree(Tick token, Stream stream) { history_.OnFree(token, stream); }
  // The place of a planned slot was taken,
  void OnConflict(Bytes bytes) { active_->window_conflicts += bytes; }
  // by a block that was the token `since` (negative: none) and lies at `offset`.
  void OnTaken(uint32_t slot, Bytes bytes, Tick since, Offset offset);

  // So much lies in the places of the plan in use, as a round of it begins, that it does not know of: blocks of its own that
  // outlive their slots, and others. True where it is not followed in this round.
  bool Rest(Bytes outliving, Bytes others);

  // A plan of an earlier run. It is followed once the sequence is surely in it, but not before the token
  // `from`: what a job allocates while it starts can look like a part of its cycle. Where none has been
  // followed a round later, nor after an eighth more than the start took then, it is forgotten: the job is
  // another one.
  struct Expected {
    ServingPlan plan;
    Tick from;
    Tick cut{};                         // a token that was its first slot
    std::vector<StayingBlock> stays{};  // by token
  };
  void Expect(Expected expected);
  // Those that have not been followed yet.
  void ForgetExpected();
  // Such a plan is there, and none has been followed yet.
  bool expecting() const { return active_ == nullptr && !waiting_.empty(); }
  // The plans of the set, for a later run; the one in use first.
  struct Known {
    std::vector<profiler::Slot> cycle;
    Tick from;
    Tick cut;  // the first of its cuts from there on
    std::vector<StayingBlock> stays{};
  };
  std::vector<Known> KnownPlans() const;
  // Whether it is known to be a block of the job's start that stays.
  bool Stays(Tick token) const;
  // The slot of the plan in use, one of an earlier run, that an allocation was before that plan came into use;
  // kNoSlot where it was none, or that is not known, and once its first cycle is over.
  uint32_t SlotInStart(Tick token) const;

  // The iteration to plan for, when a period has been found that neither the plan in use nor the one being
  // solved serves. nullopt also when it should be asked again later; then a coming step says so.
  std::optional<profiler::Iteration> IterationToPlan();
  // A plan for that iteration is asked for; one on its way is dropped. The candidate belongs to both.
  std::shared_ptr<Candidate> BeginPlanning();
  // The solved plan, at its cut. Adopting it makes the present allocation the step's slot of it; dropping it,
  // or what could not be asked for, puts off the next one.
  ServingPlan& candidate() { return pending_.plan(); }
  const ServingPlan& candidate() const { return pending_.plan(); }
  // From where on the sizes are its cycle's, as far as is known.
  Tick candidate_from() const { return pending_.cycle().from; }
  // `from`: where its first round began.
  void Adopt(Tick from, std::vector<StayingBlock> stays = {});
  // The adopted plan's first cycle lies like this.
  void BeginWith(std::vector<ServingPlan::Slot> slots) {
    active_->plan.later = std::exchange(active_->plan.slots, std::move(slots));
  }
  void Drop();

  const ServingPlan* plan() const { return active_ == nullptr ? nullptr : &active_->plan; }
  // Calls visit(plan) for the one in use and those beside it.
  template <typename Visit>
  void ForEachPlan(Visit visit) const {
    if (active_ != nullptr) visit(active_->plan);
    for (const auto& other : waiting_) visit(other->plan);
  }
  // For the iteration that IterationToPlan returns.
  std::vector<OtherPlan> OtherPlans() const;
  // The begin of the lowest plan of the set, and the end of the highest.
  Offset plans_begin() const;
  Offset plans_end() const;
  // Whether the plan in use is followed, and its free places are to be kept for coming slots.
  bool KeepsPlaces(Stream stream) const {
    return active_ != nullptr && !active_->IsAstray() && (active_->keeps_places() || !rules_.keep_places) &&
           active_->matcher->InStep(stream);
  }
  // There may not be the memory that the plan in use takes for streams to run at once, if it takes any.
  void LayAgain() {
    if (active_ != nullptr && active_->plan.for_lag > Bytes(0)) active_->takes_too_much = true;
  }
  // A plan is followed, or soon will be.
  bool promising() const;
  const std::optional<profiler::Period>& period() const { return finder_.confirmed(); }
  // Whether the latest allocation belonged to that period, noise aside.
  bool in_period() const { return finder_.in_step(); }
  int64_t iterations() const { return finder_.iterations(); }
  Tick now() const { return history_.now(); }

  struct Counters {
    int64_t mismatches = 0;     // not what the plan expected next
    int64_t times_lost = 0;     // the matcher lost its place
    int64_t withheld = 0;       // slots not followed: too much lay elsewhere, and no entry had come
    int64_t plans_failed = 0;   // solved without a usable result
    int64_t plans_dropped = 0;  // solved, but another was found before the cut came
    int64_t plans_renewed = 0;  // adopted for a cycle that had changed, or whose places were taken
    int64_t plan_switches = 0;  // back to a plan that was followed before
    int64_t looks = 0;          // through a whole round, for a plan
  };
  Counters counters() const;

 private:
  void DoubtPeriod();
  bool IsDoubted(const PlannedCycle& cycle) const;
  bool Outgrown() const;
  bool Awaits() const { return pending_.exists() && pending_.Awaits(history_.now()); }
  bool Has(uint64_t fingerprint) const;
  std::nullopt_t AskAgain(int64_t tokens);
  std::optional<profiler::Iteration> NewIteration();
  std::optional<profiler::Iteration> ChangedIteration();
  void PutOffPlanning(int64_t round);
  void FollowPending(Bytes bytes, Stream stream, Step& step);
  void FollowWaiting(Bytes bytes, Stream stream, Step& step);
  void FollowFromEntry(Bytes bytes, Stream stream, Step& step);
  void CountShare(Bytes bytes, Stream stream, Step& step);
  void CountAstray(FollowedPlan& plan, bool in_use, uint32_t slot, Bytes bytes, Stream stream) const;
  void Leave(FollowedPlan& used);
  static void Account(const FollowedPlan& used, Counters& counters);

  profiler::PeriodFinder finder_;
  profiler::History history_;
  const Rules rules_;
  std::unique_ptr<FollowedPlan> active_;                // set: serving
  std::vector<std::unique_ptr<FollowedPlan>> waiting_;  // followed before
  PendingPlan pending_;
  PlannedCycle next_cycle_;  // what IterationToPlan has returned
  Stream last_stream_{};     // of the latest allocation
  Tick ask_again_at_{-1};    // the token at which a plan put off is asked for again
  Tick looked_for_{-1};      // when the period was found whose round was looked through last,
  Tick look_again_at_{-1};   // and the token before which it is not looked through again
  // Of the iteration that was planned last. One whose round does not repeat exactly may have something in it
  // that does not recur; it is followed all the same, and gives way to one that does.
  bool exact_ = false;
  uint64_t fingerprint_ = 0;
  // Planning again waits for so many rounds, and not before this token; also where a cycle of this length
  // could not be planned.
  int64_t replan_rounds_ = 1;
  int64_t replan_from_ = 0;
  int64_t failed_length_ = 0;

  Counters counters_;
};

}  // namespace reprise::replay
