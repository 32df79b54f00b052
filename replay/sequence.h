// One sequence of allocations: finds its iteration, asks for a plan, and follows it.
//
// A device has one for all that is allocated on it and, where several threads allocate at once and their
// order is never the same twice, one for each of them (engine.h).
//
// Not thread-safe: the engine's lock is held around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "replay/matcher.h"
#include "replay/planning.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

class Sequence {
 public:
  explicit Sequence(profiler::PeriodFinder::Options options) : finder_(options) {}

  // What one allocation came to. Filled in place: returned, its small fields would be read as one word just
  // after they were written one by one, which stalls.
  struct Step {
    Tick token;
    uint32_t slot = Matcher::kNoSlot;  // of the plan in use
    bool at_cut = false;               // a solved plan is in step and this is its cut: Adopt, or Drop
    bool settled = false;              // the plan in use has just been followed for a first period
    bool wants_plan = false;           // IterationToPlan may have something
  };
  // Takes in one allocation; `live` are the live bytes before it, of everything that this sequence sees.
  void OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live, Step& step);
  void OnFree(Tick token, Stream stream) { history_.OnFree(token, stream); }

  // The iteration to plan for, when a period has been found that neither the plan in use nor the one being
  // solved serves. nullopt also when it should be asked again later; then a coming step says so.
  std::optional<profiler::Iteration> IterationToPlan();
  // A plan for that iteration is being solved; one on its way is dropped. The candidate belongs to both.
  std::shared_ptr<Candidate> BeginPlanning();
  void CancelPlanning();
  // The solved plan, at its cut. Adopting it makes the present allocation its slot 0.
  ServingPlan& candidate() { return candidate_->plan; }
  const ServingPlan& Adopt();
  void Drop();

  const ServingPlan* plan() const { return active_ == nullptr ? nullptr : &active_->plan; }
  bool InStep(Stream stream) const { return active_ != nullptr && active_->matcher->InStep(stream); }
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
    int64_t plans = 0;          // adopted
    int64_t plans_failed = 0;   // solved without a usable result
    int64_t plans_dropped = 0;  // solved, but another was found before the cut came
  };
  Counters counters() const;

 private:
  struct Active {
    ServingPlan plan;
    std::unique_ptr<Matcher> matcher;
    profiler::Period period;
    bool settled = false;
  };

  bool ServedBy(const Active& active) const;
  std::nullopt_t AskAgain(int64_t tokens);
  int64_t ExactPeriod(int64_t period) const;
  bool RepeatsExactly(int64_t tokens, int64_t lag, int64_t& looks) const;
  bool PollCandidate();
  bool CandidateAtCut(Bytes bytes, Stream stream);
  void CountShare(Step& step);

  profiler::PeriodFinder finder_;
  profiler::History history_;
  std::unique_ptr<Active> active_;        // set: serving
  std::shared_ptr<Candidate> candidate_;  // set: being solved, or waiting for the cut
  profiler::Period candidate_period_;
  bool candidate_in_shadow_ = false;
  Tick shadow_since_;
  Stream last_stream_{};   // of the latest allocation
  Tick ask_again_at_{-1};  // the token at which a plan put off is asked for again
  // Of the iteration that was planned last. One whose round does not repeat exactly may have something in it
  // that does not recur; it is followed all the same, and gives way to one that does.
  bool exact_ = false;
  uint64_t fingerprint_ = 0;

  // Matched share over about one period: the measure of whether the plan still fits.
  int64_t window_tokens_ = 0;
  int64_t window_matched_ = 0;
  double matched_share_ = 1.0;

  Counters counters_;
};

}  // namespace reprise::replay
