// Small buffers that live at much the same time, as one larger buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// What is worked out about boxes holds for their members: stacked within their box, these overlap nobody.
// (The idea is that of Buchsbaum, Karloff, Kenyon, Reingold and Thorup, *OPT versus LOAD in dynamic storage
// allocation*, 2004.) A box is in use from its first member's start to its last one's end, so it wastes what
// its members do not share.
struct Boxes {
  Instance instance;                  // of the boxes, over the slots of the whole
  std::vector<int32_t> first_member;  // boxes + 1 indices into `members`
  std::vector<int32_t> members;       // buffers of the whole

  std::span<const int32_t> of(int32_t box) const {
    return std::span(members).subspan(first_member[box], first_member[box + 1] - first_member[box]);
  }
};

// Free buffers of less than `height` go into boxes of at most that; each other one, and each pinned one, is a
// box of its own. Gaps count as in use. The small ones are points, (start, end), that are halved by whichever
// of the two differs more until what is left fits into a box. O(n log^2 n); memory linear.
Boxes BoxesOf(const Instance& whole, int64_t height);

}  // namespace reprise::planner
