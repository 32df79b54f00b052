// A plan as the matcher and the engine use it: the cycle of slots, each with its place in the arena.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"

namespace reprise::replay {

struct ServingPlan {
  struct Slot {
    Bytes bytes;  // as requested
    Stream stream{};
    Offset
        offset;  // where it lies; negative when the slot is not planned (persistent, longer than the period)
    bool crosses = false;  // its place goes to another stream next: its free records an event
    bool planned() const { return offset.count() >= 0; }
  };

  std::vector<Slot> slots;  // in the order of allocation; slot 0 is the cut
  // What the plan was made of, by slot; not looked at while serving.
  std::vector<profiler::Slot> cycle;
  Offset end;         // the plan covers [0, end) of the arena
  Bytes slab;         // height of the planned slots above the arena's begin, as solved
  Bytes lower_bound;  // planner::LowerBound: counts obstacles as far as the slab reaches past them
};

}  // namespace reprise::replay
