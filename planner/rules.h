// What the heuristics are made of, each part with a switch, so that its worth can be measured.
#pragma once

namespace reprise::planner {

struct HybridRules {
  bool look_ahead = true;      // lay a large buffer only where the rest still has room below the target
  bool relax_goal = true;      // every third round, look ahead to the best placement and not to the target
  bool several_shares = true;  // of the target, from which on a buffer counts as large; otherwise one
  bool several_ranks = true;   // otherwise one
  bool noise = true;           // on the ranks, once all was tried without
  bool promote = true;         // a small buffer that comes out too high counts as large the next time
};

}  // namespace reprise::planner
