// A plan as the matcher and the engine use it: the cycle of slots, each with its place in the arena.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"

namespace reprise::replay {

struct ServingPlan {
  struct Slot {
    Bytes bytes;  // as requested
    Stream stream{};
    Offset offset;         // where it lies; negative when the slot is not planned (persistent)
    bool crosses = false;  // its place goes to another stream next: its free records an event
    bool entry = false;    // who was elsewhere comes in here: MarkEntries
    bool planned() const { return offset.count() >= 0; }
  };

  // In the order of allocation; slot 0 is the cut. One round of the job, or several alike where blocks live
  // for longer than one.
  std::vector<Slot> slots;
  // The same for later cycles, while the first lies otherwise (first_cycle.h); else empty.
  std::vector<Slot> later;
  const std::vector<Slot>& lasting() const { return later.empty() ? slots : later; }
  // Whether so much is little of what the cycle has live: an eighth of its swing at most.
  bool IsLittle(Bytes live) const { return live.count() <= swing.count() / 8; }
  // What the plan was made of, by slot; not looked at while serving.
  std::vector<profiler::Slot> cycle;
  Offset begin;  // the plan covers [begin, end) of the arena
  Offset end;
  bool alone = false;  // solved without what lives beside the cycle: of an earlier run, or laid beside it
  Bytes slab;          // height of the planned slots above `begin`, as solved
  Bytes for_lag;       // of that above what the load needs, where several streams run at once (stream_lag.h)
  Bytes most_to_be_had{INT64_MAX};  // of memory, as far as was known when it was asked for
  Bytes swing;                      // from the least to the most that is live of the cycle at once
  Bytes lower_bound;  // planner::LowerBound: counts obstacles as far as the slab reaches past them
};

// A plan's rounds at most: in so many, blocks that live for two rounds and blocks that live for three both fill their places.
inline constexpr int64_t kMostRoundsOfAPlan = 6;

// How many rounds alike a plan is of: 1, or as many times as a part of it comes in a row.
inline int64_t RoundsOf(const ServingPlan& plan) {
  const auto slots = static_cast<int64_t>(plan.slots.size());
  for (int64_t rounds = kMostRoundsOfAPlan; rounds > 1; --rounds) {
    const int64_t round = slots / rounds;
    if (slots % rounds != 0 || round < profiler::PeriodFinder::kMinPeriod) continue;
    if (std::equal(plan.slots.begin() + round, plan.slots.end(), plan.slots.begin(),
                   [](const ServingPlan::Slot& a, const ServingPlan::Slot& b) {
                     return a.bytes == b.bytes && a.stream == b.stream;
                   })) {
      return rounds;
    }
  }
  return 1;
}

// The slot of a cycle of so many that is so many behind its first one; negative: in front of it.
inline uint32_t InCycle(int64_t behind_first, int64_t slots) {
  const int64_t turn = behind_first % slots;
  return static_cast<uint32_t>(turn < 0 ? turn + slots : turn);
}

// The slot that a token is where `cut` was the first one and nothing else than the cycle came in between.
inline uint32_t SlotByNumber(const ServingPlan& plan, Tick cut, Tick token) {
  return InCycle(token - cut, static_cast<int64_t>(plan.slots.size()));
}

}  // namespace reprise::replay
