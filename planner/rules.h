// The planner's rules as named switches, so that what each one brings can be measured.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::planner {

// All rules are on unless switched off. The name of each member of the portfolio is a rule too: without it,
// the member does not run. RuleNames() in portfolio.h lists them all.
class Rules {
 public:
  bool on(std::string_view rule) const { return std::find(off_.begin(), off_.end(), rule) == off_.end(); }
  void SwitchOff(std::string_view rule) { off_.emplace_back(rule); }

 private:
  std::vector<std::string> off_;
};

struct HybridRules {
  bool look_ahead = true;      // lay a large buffer only where the rest still has room below the target
  bool several_shares = true;  // of the target, from which on a buffer counts as large; otherwise one
  bool several_ranks = true;   // otherwise one
  bool crowded = true;         // what lives through a crowd counts as large, in four of nine splits
  bool noise = true;           // on the ranks, once all was tried without
  bool promote = true;         // a small buffer that comes out too high counts as large the next time
};

}  // namespace reprise::planner
