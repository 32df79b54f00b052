#include "replay/followed_plan.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"

namespace reprise::replay {
namespace {

// A plan whose matched share stays below this gives way to a longer period.
constexpr double kGoodShare = 0.98;
// A cycle that another one is inside of is longer by at least this part of it.
constexpr int64_t kPartsLonger = 8;
// More than this part of a round's bytes not where they were planned: something lies in the way.
constexpr int64_t kConflictParts = 50;
// A block that goes so much of a round later than planned is only late: other threads let go of it, sooner or later each time.
constexpr int64_t kPartsLate = 10;
// A block that outstays its slot is noticed by the next round that wants its place. One that has been there for so many is
// there for good.
constexpr int64_t kRoundsOutstayed = 2;
// Rounds after which a plan has proved itself.
constexpr int64_t kGoodRounds = 8;
// Of the slots that a waiting plan has seen in a job's start, so many are known, the latest ones: 2 MiB.
constexpr size_t kMostStartSlots = size_t{1} << 17;

}  // namespace

bool IsLonger(const profiler::Period& period, const profiler::Period& than) {
  return kPartsLonger * (period.length - than.length) > than.length;
}

bool PlannedCycle::IsOf(const profiler::Period& found) const {
  return period.found_at == found.found_at || (!IsLonger(found, period) && !IsLonger(period, found));
}

uint64_t FingerprintOf(std::span<const profiler::Slot> cycle) {
  uint64_t sum = 0;
  const profiler::Slot* before = &cycle.back();
  for (const profiler::Slot& slot : cycle) {
    sum += absl::HashOf(before->bytes.count(), before->stream, slot.bytes.count(), slot.stream,
                        slot.persistent ? 0 : slot.length);
    before = &slot;
  }
  return sum;
}

bool FollowedPlan::BeginUse() {
  mismatches_before = matcher->mismatches();
  times_lost_before = matcher->times_lost();
  RestartCount();
  rests = false;
  rounds_rested = 0;
  live_at_begin = Bytes(0);               // it looks at the next one
  if (of_earlier_run) astray = Bytes(0);  // its first cycle is laid around what is there
  return std::exchange(of_earlier_run, false);
}

void FollowedPlan::EndFirstCycle() {
  start_slots.clear();
  if (!plan.later.empty()) plan.slots = std::exchange(plan.later, {});
}

void FollowedPlan::RestartCount() {
  window_tokens = window_matched = window_lost = 0;
  window_bytes = window_conflicts = Bytes(0);
}

void FollowedPlan::TakeMeasures() {
  matched_share = static_cast<double>(window_matched) / static_cast<double>(window_tokens);
  const int64_t in_step = window_tokens - window_lost;
  if (2 * in_step >= window_tokens)
    told_share = static_cast<double>(window_matched) / static_cast<double>(in_step);
  // In its first cycle, what was there before the plan is in its way, and goes by itself.
  in_the_way = settled && window_conflicts * kConflictParts > window_bytes;
  good_rounds = matches() && !in_the_way && !takes_too_much ? good_rounds + 1 : 0;
  RestartCount();
}

bool FollowedPlan::matches() const { return matched_share >= kGoodShare; }

bool FollowedPlan::proven() const {
  const auto round = static_cast<int64_t>(plan.slots.size());
  return good_rounds * round >= kGoodRounds * std::max(round, kShortRound);
}

bool FollowedPlan::Serves(const profiler::Period& period, Stream stream) const {
  return period.length == cycle.period.length &&
         (period.found_at == cycle.period.found_at || matcher->InStep(stream));
}

bool FollowedPlan::ShouldLook(Tick token, uint32_t slot, Bytes live) {
  const int64_t round = cycle.period.length;
  if (!settled || round < kShortRound) return false;
  if (token - round_began <= round / 2 || slot % round > Matcher::ReachOf(round)) return false;
  const bool should = rests || IsMuchInTheWay(unexpected) || IsMuchInTheWay(live - live_at_begin);
  round_began = token;
  ++rounds_begun;
  live_at_begin = live;
  unexpected_before = std::exchange(unexpected, Bytes(0));
  return should;
}

bool FollowedPlan::IsThereForGood(int64_t age, int64_t slots) { return age >= kRoundsOutstayed * slots; }

bool FollowedPlan::Outlives(const profiler::Slot& slot, int64_t age, int64_t slots) {
  return age > slot.length + slots / kPartsLate && !IsThereForGood(age, slots);
}

bool FollowedPlan::Outstays(uint32_t slot, Tick since, Offset offset, Tick now) const {
  if (since < Tick(0)) return false;
  const auto slots = static_cast<int64_t>(plan.slots.size());
  const int64_t age = now - 1 - since;
  const uint32_t its = InCycle(slot - age, slots);
  return plan.slots[its].offset == offset && Outlives(plan.cycle[its], age, slots);
}

void FollowedPlan::Doubt() {
  doubted = true;
  astray = plan.swing + Bytes(1);
}

void FollowedPlan::NoteInStart(Tick token, uint32_t slot) {
  if (start_slots.size() == kMostStartSlots) start_slots.pop_front();
  start_slots.emplace_back(token, slot);
}

uint32_t FollowedPlan::SlotInStart(Tick token, const profiler::History& history) const {
  if (token < history.oldest()) return Matcher::kNoSlot;
  const auto seen = std::ranges::lower_bound(start_slots, token, {}, &std::pair<Tick, uint32_t>::first);
  if (seen == start_slots.end()) return Matcher::kNoSlot;
  // Those by which the matcher has found its place again are in front of the first that it has told.
  size_t slot = seen->second;
  for (Tick t = seen->first; t > token; t = t - 1) {
    slot = (slot + plan.cycle.size() - 1) % plan.cycle.size();
    if (history.at(t - 1).bytes != plan.cycle[slot].bytes) return Matcher::kNoSlot;
  }
  return static_cast<uint32_t>(slot);
}

}  // namespace reprise::replay
