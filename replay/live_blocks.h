// What the live blocks of an arena are to a plan: instances of its slots, what stays, or what it has to lie around.
//
// `origin` is the token of a cycle's slot 0, `now` how many tokens have been seen. Each takes time in proportion to the live
// blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
#include "replay/arena.h"
#include "replay/obstacles.h"
#include "replay/planning.h"
#include "replay/region_walk.h"
#include "replay/residents.h"
#include "replay/sequence.h"

namespace reprise::replay {

// A cycle of slots, and when the round began in which it is looked at.
struct CycleAt {
  std::span<const profiler::Slot> slots;
  Tick origin;
  Tick now;

  // The slot that a live block is the latest instance of, or one of the latest where several are alive; kNoSlot where the
  // cycle will not free it by itself: it is none, or older than the slot's lifetime. (Size and position alone are not enough:
  // an optimizer's state, allocated among the first gradients, looks like them.)
  uint32_t SlotOf(const BlockInfo& block) const;
  // The one that a block was, however long it has lived.
  uint32_t SlotBy(Tick token, Bytes bytes, Stream stream) const;
};

// Those that are no instances, in the order of their offsets.
std::vector<Obstacle> FindObstacles(const Arena& arena, const CycleAt& cycle);

// What the plan in use does not know of and will find in its way, small blocks aside.
struct InTheWay {
  Bytes outliving;  // instances of slots, wherever they lie, that live for much longer than the cycle says
  Bytes others;     // what stays, as far as it lies in the places of slots
};
InTheWay FindInTheWay(const Sequence& sequence, const Arena& arena, const CycleAt& cycle);

// Where a job comes from its start into the cycle, whose sizes there are from the token `first` on: behind what looks like a
// slot of the half round from there, and stays. So may what a job allocates last while it starts, an optimizer's state where
// each later step ends with a temporary of that size.
Tick BeginOf(const Arena& arena, const CycleAt& cycle, Tick first);

// Those from before the token `from` that are no instances, by token.
std::vector<StayingBlock> WhatStays(const Arena& arena, const CycleAt& cycle, Tick from);

// All of them, as a sequence knows them whose plan has just come into use.
std::vector<LiveBlock> BlocksFor(const Sequence& sequence, const Arena& arena, const CycleAt& cycle);

// What outlives its round is alive when the plan is adopted. Where it lies is its place from then on, if that can be: until
// all of it had moved, memory would be held for both places. `found`: the tokens of one of the request's rounds.
void KeepInPlace(const Arena& arena, int64_t found, Tick now, PlanRequest& request);

// The live bytes, small blocks aside, that begin in none of the regions.
Bytes LiveBeside(const Arena& arena, std::vector<Region> regions);

// The lowest offset above which nothing is live in `height` bytes and none of the regions is, or nullopt: there are many
// addresses, but an end. Moves by `granule`.
std::optional<Offset> LowestFree(const Arena& arena, std::vector<Region> regions, Bytes height,
                                 Bytes granule);

}  // namespace reprise::replay
