#include "replay/pending_plan.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

namespace reprise::replay {
namespace {

// How many allocations are fed to the matcher at once so that it is in step when the cut comes.
constexpr int64_t kShadowLead = 64;
// Where the cut has come again so many rounds in a row and was not met, a plan is adopted a little behind it.
constexpr int kCutsToMiss = 3;

}  // namespace

std::shared_ptr<Candidate> PendingPlan::Begin(const PlannedCycle& cycle) {
  if (candidate_ != nullptr) candidate_->cancel = true;
  candidate_ = std::make_shared<Candidate>();
  cycle_ = cycle;
  looks_on_ = false;
  return candidate_;
}

bool PendingPlan::failed() const {
  return !looks_on_ && candidate_->ready.load(std::memory_order_acquire) && !candidate_->status.ok();
}

// Starts the matcher when the plan has just been solved, with the last allocations before this one, so that it is in step at
// once; at the place that they have by their number, as micro-batches that are alike cannot be told apart.
bool PendingPlan::LooksOn(const profiler::History& history) {
  if (looks_on_) return true;
  if (!candidate_->ready.load(std::memory_order_acquire)) return false;
  const Tick now = history.now();  // this allocation is in the history already, and not to be fed
  looks_on_ = true;
  looks_on_since_ = now;
  missed_cuts_ = 0;
  missed_at_ = Tick(0);
  const Tick first = std::max(history.oldest(), now - 1 - kShadowLead);
  candidate_->matcher->StartAt(SlotByNumber(candidate_->plan, cycle_.origin, first));
  for (Tick t = first; t < now - 1; t = t + 1) {
    candidate_->matcher->Step(history.at(t).bytes, history.at(t).stream);
  }
  return true;
}

// Where the allocations around the cut are never the same, one a little behind it has to do. Of several
// rounds it is the cut of the one that has come since the plan was asked for: then what is live now is what
// the plan takes to be.
bool PendingPlan::AtCut(Bytes bytes, Stream stream, const profiler::History& history, uint32_t& slot) {
  if (!LooksOn(history)) return false;
  Matcher& matcher = *candidate_->matcher;
  const uint32_t cut = matcher.AtCut();
  const uint32_t own = matcher.Step(bytes, stream);
  if (own == Matcher::kNoSlot) return false;
  if (own != cut && (own != matcher.BehindCut() || !MissesCuts(history.now()))) return false;
  const auto slots = static_cast<int64_t>(candidate_->plan.slots.size());
  const int64_t round = slots / RoundsOf(candidate_->plan);
  const int64_t within = own % round;
  const int64_t since = history.now() - 1 - cycle_.origin - within;
  slot = static_cast<uint32_t>((since + round / 2) / round * round % slots + within);
  matcher.GoOnLater(static_cast<uint32_t>((slot + slots - own) % slots / round));
  return true;
}

// Whether the job has come by the cut again and not met it, a few rounds in a row of little else than the
// plan's; asked behind the cut. (What comes by it at other times is a part of something else.)
bool PendingPlan::MissesCuts(Tick now) {
  const int64_t since = now - missed_at_;
  const int64_t round = cycle_.period.length;
  const int64_t reach = Matcher::ReachOf(round);
  if (since <= reach) return missed_cuts_ >= kCutsToMiss;
  const int64_t mismatches = candidate_->matcher->mismatches();
  const double unexpected = static_cast<double>(mismatches - missed_mismatches_);
  const bool follows = std::abs(since - round) <= reach &&
                       unexpected < (1 - FollowedPlan::kUsefulShare) * static_cast<double>(round);
  missed_cuts_ = follows ? missed_cuts_ + 1 : 0;
  missed_at_ = now;
  missed_mismatches_ = mismatches;
  return missed_cuts_ >= kCutsToMiss;
}

bool PendingPlan::Awaits(Tick now) const {
  return !looks_on_ || (now - looks_on_since_) / cycle_.period.length < kRoundsToAdopt;
}

std::unique_ptr<FollowedPlan> PendingPlan::Take() {
  auto followed = std::make_unique<FollowedPlan>();
  followed->plan = std::move(candidate_->plan);
  followed->matcher = std::move(candidate_->matcher);
  followed->cycle = cycle_;
  candidate_.reset();
  return followed;
}

}  // namespace reprise::replay
