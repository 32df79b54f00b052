// What the heuristics are made of, each part with a switch, so that its worth can be measured.
#pragma once

namespace reprise::planner {

struct HybridRules {
  bool look_ahead = true;      // lay a large buffer only where the rest still has room below the target
  bool several_shares = true;  // of what counts as large; otherwise one
  bool several_ranks = true;   // otherwise one
  bool noise = true;           // on the ranks, when all is tried without
  bool raise_late = true;      // rank the buffer that came out too high better the next time
};

}  // namespace reprise::planner
