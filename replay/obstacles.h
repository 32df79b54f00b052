// What a plan has to lie around: blocks that are live, and the places of plans that it takes turns with.
//
// What a cycle has live at its end goes when its next round begins: in most jobs the gradients. A job that is alone does
// that at once, and all of it is free when its round begins. Where two take turns, such as two jobs in one process, what the
// one has at its end lives through all that the other does. That of the other lies there when a cycle is planned, as an
// obstacle; its own would come to lie anywhere, and in the other's places. Each time one of them was laid around the other's
// it moved its own, and the other was to be laid again. So the places of the others are kept from what it has at its end.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// A live block.
struct Obstacle {
  Offset offset;
  Bytes bytes;
  Tick token{-1};  // its number among the job's; negative: none
};

// A plan beside the cycle that is to be planned.
struct OtherPlan {
  const ServingPlan* plan;
  Tick last_used;  // the token that it has last been followed with
};

// The places of those of them that the cycle takes turns with, joined, in the order of their offsets and without what
// `obstacles` (in that order, too) take. One takes turns with it whose last round has left half of what it has at its end or
// more among the obstacles: the cycle has been run meanwhile.
std::vector<Obstacle> PlacesOfOthers(std::span<const OtherPlan> others, std::span<const Obstacle> obstacles);

}  // namespace reprise::replay
