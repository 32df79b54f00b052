// A plan from when it is asked for until it is adopted at its cut: while it is solved elsewhere, and while its matcher looks
// on until the job comes by the cut.
//
// The engine's lock is held around every call.
#pragma once

#include <cstdint>
#include <memory>

#include "base/units.h"
#include "profiler/iteration.h"
#include "replay/followed_plan.h"
#include "replay/planning.h"

namespace reprise::replay {

class PendingPlan {
 public:
  // One that has not been adopted in so many rounds is not going to be.
  static constexpr int64_t kRoundsToAdopt = 4;

  bool exists() const { return candidate_ != nullptr; }
  // Asked for. One on its way is told to stop, and forgotten. The candidate belongs to both.
  std::shared_ptr<Candidate> Begin(const PlannedCycle& cycle);
  void Forget() { candidate_.reset(); }

  // All that follows: exists().
  const PlannedCycle& cycle() const { return cycle_; }
  ServingPlan& plan() { return candidate_->plan; }
  const ServingPlan& plan() const { return candidate_->plan; }
  // Solved, and nothing came of it.
  bool failed() const;
  // Takes the latest token of `history`; true when that is the cut of the solved plan, which is `slot` then, and the job in
  // step with it.
  bool AtCut(Bytes bytes, Stream stream, const profiler::History& history, uint32_t& slot);
  // It may still be adopted.
  bool Awaits(Tick now) const;
  // Adopted.
  std::unique_ptr<FollowedPlan> Take();

 private:
  bool LooksOn(const profiler::History& history);
  bool MissesCuts(Tick now);

  std::shared_ptr<Candidate> candidate_;
  PlannedCycle cycle_;
  bool looks_on_ = false;  // its matcher does,
  Tick looks_on_since_;
  int missed_cuts_ = 0;            // in a row
  Tick missed_at_;                 // the last of them
  int64_t missed_mismatches_ = 0;  // what its matcher had not expected until then
};

}  // namespace reprise::replay
