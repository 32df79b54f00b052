#include "replay/first_cycle.h"

#include <algorithm>
#include <new>

#include "base/stack_room.h"
#include "planner/validator.h"

namespace reprise::replay {
namespace {

// For how long the job waits, at most, where a first answer does not take longer; and the most blocks, for which it
// takes some tenths of a second.
constexpr double kSeconds = 0.03;
constexpr size_t kMostBlocks = size_t{1} << 17;
// Up to so small a part of a cycle's bytes may be in the way: it is not worth the wait.
constexpr int64_t kPartInTheWay = 200;
// What the placement takes of the job's stack is 25 KiB for thousands of blocks.
constexpr size_t kStack = size_t{128} << 10;
// It may reach higher than the plan and what is there by one part in so many: a first answer may be far off, and for one
// cycle more would be held than without it.
constexpr int64_t kPartAbove = 6;
// Of so many blocks in one place, one will be there for long enough.
constexpr int kMostOverlaps = 64;

// Whether anything lies in [begin, end) that is still there when `time` slots have come.
bool InTheWay(std::span<const Resident> residents, Offset begin, Offset end, int64_t time) {
  auto it =
      std::ranges::partition_point(residents, [&](const Resident& r) { return r.offset + r.bytes <= begin; });
  for (int looks = 0; it != residents.end() && it->offset < end; ++it) {
    if (it->until > time || ++looks == kMostOverlaps) return true;
  }
  return false;
}

Offset EndOf(const ServingPlan& plan, std::span<const Resident> residents) {
  return residents.empty() ? plan.end : std::max(plan.end, residents.back().offset + residents.back().bytes);
}

struct FirstCycle {
  planner::Problem problem;       // first a buffer for each planned slot, then one for each resident, pinned
  std::vector<uint32_t> slot_of;  // by buffer, residents aside
  Bytes planned;
  Bytes in_the_way;  // of that
};

FirstCycle MakeFirstCycle(const ServingPlan& plan, uint32_t from, std::span<const Resident> residents) {
  FirstCycle first;
  first.problem.reuse = planner::Reuse::kForbidden;
  const auto cycle = static_cast<int64_t>(plan.slots.size());
  for (uint32_t i = 0; i < plan.slots.size(); ++i) {
    const ServingPlan::Slot& slot = plan.slots[i];
    if (!slot.planned()) continue;
    const int64_t time = (i + cycle - from) % cycle;
    planner::Buffer buffer = BufferOf(plan.cycle[i], time);
    const bool taken = InTheWay(residents, slot.offset, slot.offset + buffer.size, time);
    if (taken) first.in_the_way += slot.bytes;
    first.planned += slot.bytes;
    if (buffer.upper > Tick(cycle)) {
      buffer.upper = Tick(cycle);
      if (!taken) buffer.pinned = slot.offset;
    }
    first.problem.buffers.push_back(buffer);
    first.slot_of.push_back(i);
  }
  for (const Resident& resident : residents) {
    first.problem.buffers.push_back({.lower = Tick(0),
                                     .upper = Tick(std::min(resident.until, cycle)),
                                     .size = resident.bytes,
                                     .pinned = resident.offset});
  }
  return first;
}

std::optional<std::vector<ServingPlan::Slot>> Lay(const ServingPlan& plan, uint32_t from,
                                                  std::span<const Resident> residents, const Solver& solve) {
  if (plan.slots.size() + residents.size() > kMostBlocks || StackRoom() < kStack) return std::nullopt;
  const FirstCycle first = MakeFirstCycle(plan, from, residents);
  if (first.in_the_way * kPartInTheWay <= first.planned) return std::nullopt;
  const absl::StatusOr<planner::Solution> solution = solve(first.problem, BudgetOf(kSeconds));
  if (!solution.ok()) return std::nullopt;
  const Bytes needed = std::max(solution->lower_bound, EndOf(plan, residents) - Offset(0));
  if ((solution->placement.slab - needed) * kPartAbove > needed) return std::nullopt;
  if (!planner::CheckPlacement(first.problem, solution->placement).ok()) return std::nullopt;
  std::vector<ServingPlan::Slot> slots = plan.slots;
  for (size_t b = 0; b < first.slot_of.size(); ++b)
    slots[first.slot_of[b]].offset = solution->placement.offsets[b];
  MarkCrossings(plan.cycle, slots);
  return slots;
}

}  // namespace

std::optional<std::vector<ServingPlan::Slot>> LayFirstCycle(const ServingPlan& plan, uint32_t from,
                                                            std::span<const Resident> residents,
                                                            const Solver& solve) {
  try {
    return Lay(plan, from, residents, solve);
  } catch (const std::bad_alloc&) {  // it is followed as it is, then
    return std::nullopt;
  }
}

}  // namespace reprise::replay
