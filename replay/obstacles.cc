#include "replay/obstacles.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "replay/ranges.h"
#include "replay/region_walk.h"

namespace reprise::replay {
namespace {

Bytes LiveAtEnd(const ServingPlan& plan) {
  Bytes live;
  const auto end = static_cast<int64_t>(plan.cycle.size());
  for (int64_t i = 0; i < end; ++i) {
    const auto slot = static_cast<size_t>(i);
    if (plan.slots[slot].planned() && i + plan.cycle[slot].length >= end) live += plan.cycle[slot].bytes;
  }
  return live;
}

// Several rounds have no one end.
bool TakesTurns(const OtherPlan& other, std::span<const Obstacle> obstacles) {
  if (RoundsOf(*other.plan) > 1) return false;
  const Tick round_began = other.last_used - static_cast<int64_t>(other.plan->slots.size());
  Bytes left;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.token > round_began && obstacle.token <= other.last_used) left += obstacle.bytes;
  }
  const Bytes at_end = LiveAtEnd(*other.plan);
  return at_end > Bytes(0) && left * 2 >= at_end;
}

void AddPlaces(const ServingPlan& plan, std::vector<Region>& places) {
  const std::vector<ServingPlan::Slot>& slots = plan.lasting();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].planned()) continue;
    const Bytes bytes = Footprint(plan.cycle[i].bytes, plan.cycle[i].alignment);
    places.emplace_back(slots[i].offset, slots[i].offset + bytes);
  }
}

}  // namespace

std::vector<Obstacle> PlacesOfOthers(std::span<const OtherPlan> others, std::span<const Obstacle> obstacles) {
  std::vector<Region> places;
  for (const OtherPlan& other : others) {
    if (TakesTurns(other, obstacles)) AddPlaces(*other.plan, places);
  }
  std::ranges::sort(places);
  std::vector<Obstacle> taken;
  Offset done;  // of what has been gone through so far
  const auto take_up_to = [&](Offset end) {
    if (end <= done) return;
    const bool goes_on = !taken.empty() && taken.back().offset + taken.back().bytes == done;
    if (!goes_on) taken.push_back({.offset = done});
    taken.back().bytes = end - taken.back().offset;
  };
  auto obstacle = obstacles.begin();
  for (const auto& [begin, end] : places) {
    done = std::max(done, begin);
    for (; obstacle != obstacles.end() && obstacle->offset < end; ++obstacle) {
      take_up_to(obstacle->offset);
      done = std::max(done, obstacle->offset + obstacle->bytes);
    }
    take_up_to(end);
    done = std::max(done, end);
  }
  return taken;
}

}  // namespace reprise::replay
