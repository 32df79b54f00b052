// How long what is live stays, when a plan comes into use.
//
// Of most blocks it is known: they stay for good, as weights do, or are the cycle's own, and each of these is the slot
// that comes of counting back, or that the plan's matcher has seen in the start of the job. In the start of a job whose
// steps are alike the matcher has seen none (a cycle with an evaluation in it is many steps), and a first step's gradients
// would be taken to stay: a vision transformer then needed a fifth more than it ever held. But the plan says what the
// cycle has live at this moment. So a block of which nothing is known is taken for such a slot of its size that no other
// block is, the youngest for the youngest. Where that is wrong the slots that come to lie there find their place taken.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "replay/matcher.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// A block that is live when a plan comes into use.
struct Resident {
  static constexpr int64_t kStays = INT64_MAX;
  Offset offset;
  Bytes bytes;  // as it lies
  // Freed, by the cycle, before so many slots have come, the present one included (> 0); kStays: never.
  int64_t until;
};

// The same as it is known.
struct LiveBlock {
  Offset offset;
  Bytes bytes;      // as it lies
  Bytes requested;  // as it was asked for
  Stream stream{};
  Tick token{};        // negative: of a block too small to be one
  bool stays = false;  // for good
  // Of the cycle, if it was allocated in the latest one; and as the matcher saw it in the start of the job.
  uint32_t slot = Matcher::kNoSlot;
  uint32_t slot_in_start = Matcher::kNoSlot;
};

// In the order of `blocks`. `from`: the slot that the plan comes into use with, which is the token `now`.
std::vector<Resident> ResidentsOf(const ServingPlan& plan, uint32_t from, Tick now,
                                  std::span<const LiveBlock> blocks);

}  // namespace reprise::replay
