// A plan's first cycle, laid by itself.
//
// A plan takes its cycle to be as it always is. But when it comes into use, what the cycle before has left (such as
// gradients, which many jobs free only after the forward pass) lies wherever best fit had put it, all over the plan's
// range. Every slot whose place is taken then would come to lie beside the plan, and what lies between the blocks in
// the way would be held for nobody: a ResNet needed an eighth more than ever before, in this one cycle. So that cycle
// gets places of its own, around what is there and for as long as it is, and what outlives it lies where the plan says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "replay/planning.h"
#include "replay/residents.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// The plan's slots as they should lie in the cycle that begins with slot `from`. `residents`: in the order of their
// offsets. nullopt where hardly anything is in the way, where the cycle is too long for the job to wait or its
// thread's stack too small, and where no placement comes of it, or one that reaches much higher than all that is there.
// The caller waits: some 30 ms, and where it is longer what a first answer of `solve` takes.
std::optional<std::vector<ServingPlan::Slot>> LayFirstCycle(const ServingPlan& plan, uint32_t from,
                                                            std::span<const Resident> residents,
                                                            const Solver& solve);

}  // namespace reprise::replay
