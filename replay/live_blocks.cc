#include "replay/live_blocks.h"

#include <algorithm>
#include <utility>

namespace reprise::replay {
namespace {

// The places of its slots, joined.
std::vector<Region> PlacesOf(const ServingPlan& plan) {
  std::vector<Region> places;
  for (const ServingPlan::Slot& slot : plan.slots) {
    if (slot.planned()) places.emplace_back(slot.offset, slot.offset + slot.bytes);
  }
  std::ranges::sort(places);
  size_t joined = 0;
  for (const Region& place : places) {
    if (joined > 0 && place.first <= places[joined - 1].second) {
      places[joined - 1].second = std::max(places[joined - 1].second, place.second);
    } else {
      places[joined++] = place;
    }
  }
  places.resize(joined);
  return places;
}

}  // namespace

uint32_t CycleAt::SlotBy(Tick token, Bytes bytes, Stream stream) const {
  if (token < Tick(0)) return Matcher::kNoSlot;
  const uint32_t i = InCycle(token - origin, static_cast<int64_t>(slots.size()));
  const profiler::Slot& slot = slots[i];
  const bool is_it = !slot.persistent && slot.bytes == bytes && slot.stream == stream;
  return is_it ? i : Matcher::kNoSlot;
}

uint32_t CycleAt::SlotOf(const BlockInfo& block) const {
  const uint32_t slot = SlotBy(block.token, block.requested, block.stream);
  return slot != Matcher::kNoSlot && now - block.token <= slots[slot].length ? slot : Matcher::kNoSlot;
}

std::vector<Obstacle> FindObstacles(const Arena& arena, const CycleAt& cycle) {
  std::vector<Obstacle> obstacles;
  arena.ForEachLive([&](Offset offset, Bytes bytes, const BlockInfo& info) {
    if (cycle.SlotOf(info) == Matcher::kNoSlot) obstacles.push_back({offset, bytes, info.token});
  });
  return obstacles;
}

InTheWay FindInTheWay(const Sequence& sequence, const Arena& arena, const CycleAt& cycle) {
  const ServingPlan& plan = *sequence.plan();
  const auto slots = static_cast<int64_t>(plan.cycle.size());
  const auto from = static_cast<uint32_t>(cycle.now - 1 - cycle.origin);
  const std::vector<LiveBlock> live = BlocksFor(sequence, arena, cycle);
  const std::vector<Resident> residents = ResidentsOf(plan, from, cycle.now - 1, live);
  const std::vector<Region> places = PlacesOf(plan);
  InTheWay found;
  auto place = places.begin();
  for (size_t i = 0; i < live.size(); ++i) {
    const auto& [offset, bytes, until] = residents[i];
    const uint32_t slot = cycle.SlotBy(live[i].token, live[i].requested, live[i].stream);
    const int64_t age = cycle.now - 1 - live[i].token;
    if (slot != Matcher::kNoSlot && !FollowedPlan::IsThereForGood(age, slots)) {
      if (FollowedPlan::Outlives(plan.cycle[slot], age, slots)) found.outliving += bytes;
    } else if (until == Resident::kStays) {
      while (place != places.end() && place->second <= offset) ++place;
      for (auto in = place; in != places.end() && in->first < offset + bytes; ++in)
        found.others += std::min(in->second, offset + bytes) - std::max(in->first, offset);
    }
  }
  return found;
}

Tick BeginOf(const Arena& arena, const CycleAt& cycle, Tick first) {
  const Tick half = first + static_cast<int64_t>(cycle.slots.size()) / 2;
  Tick begin = first;
  arena.ForEachLive([&](Offset, Bytes, const BlockInfo& info) {
    if (info.token < first || info.token >= half) return;
    const bool looks_like_one = cycle.SlotBy(info.token, info.requested, info.stream) != Matcher::kNoSlot;
    if (looks_like_one && cycle.SlotOf(info) == Matcher::kNoSlot) begin = std::max(begin, info.token + 1);
  });
  return begin;
}

std::vector<StayingBlock> WhatStays(const Arena& arena, const CycleAt& cycle, Tick from) {
  std::vector<StayingBlock> stays;
  arena.ForEachLive([&](Offset, Bytes, const BlockInfo& info) {
    const bool of_start = info.token >= Tick(0) && info.token < from;
    if (of_start && cycle.SlotOf(info) == Matcher::kNoSlot) stays.push_back({info.token, info.requested});
  });
  std::ranges::sort(stays, {}, &StayingBlock::token);
  return stays;
}

std::vector<LiveBlock> BlocksFor(const Sequence& sequence, const Arena& arena, const CycleAt& cycle) {
  std::vector<LiveBlock> live;
  arena.ForEachLive([&](Offset offset, Bytes bytes, const BlockInfo& info) {
    LiveBlock block = {.offset = offset,
                       .bytes = bytes,
                       .requested = info.requested,
                       .stream = info.stream,
                       .token = info.token,
                       .stays = sequence.Stays(info.token)};
    if (!block.stays) block.slot = cycle.SlotOf(info);
    if (!block.stays && block.slot == Matcher::kNoSlot)
      block.slot_in_start = sequence.SlotInStart(info.token);
    live.push_back(block);
  });
  return live;
}

void KeepInPlace(const Arena& arena, int64_t found, Tick now, PlanRequest& request) {
  const profiler::Iteration& planned = request.iteration;
  if (planned.period == found) return;  // nothing does
  const CycleAt cycle = {planned.slots, planned.origin, now};
  arena.ForEachLive([&](Offset offset, Bytes, const BlockInfo& info) {
    const uint32_t slot = cycle.SlotOf(info);
    if (slot == Matcher::kNoSlot || planned.slots[slot].length <= found) return;
    const auto at = std::ranges::lower_bound(request.slot_of, slot) - request.slot_of.begin();
    request.problem.buffers[static_cast<size_t>(at)].previous = offset;
  });
}

Bytes LiveBeside(const Arena& arena, std::vector<Region> regions) {
  Bytes live;
  RegionWalk walk(std::move(regions));
  Offset end;  // of the regions so far
  arena.ForEachLive([&](Offset offset, Bytes bytes, const BlockInfo&) {
    walk.To(offset, [&](const Region& region) { end = std::max(end, region.second); });
    if (offset >= end) live += bytes;
  });
  return live;
}

std::optional<Offset> LowestFree(const Arena& arena, std::vector<Region> regions, Bytes height,
                                 Bytes granule) {
  Offset base;
  const auto avoid = [&](const Region& taken) {
    if (base + height > taken.first) base = std::max(base, RoundUp(taken.second, granule));
  };
  RegionWalk walk(std::move(regions));
  arena.ForEachLive([&](Offset offset, Bytes bytes, const BlockInfo&) {
    walk.To(offset, avoid);
    avoid({offset, offset + bytes});
  });
  walk.To(arena.main_end(), avoid);
  return base + height > arena.main_end() ? std::nullopt : std::optional(base);
}

}  // namespace reprise::replay
