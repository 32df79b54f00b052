// What a member of the portfolio is.
#pragma once

#include <functional>
#include <string_view>

#include "planner/search.h"

namespace reprise::planner {

// A solver at work. Each call offers to the search whatever it finds until search.Stop(), and goes on where
// the last one was stopped. False: it has nothing more to offer, and is not to be called again.
using Turn = std::function<bool()>;

struct Solver {
  std::string_view name;  // static; stands in plans and on the command line, and is a rule (rules.h)
  Turn (*begin)(Search& search, std::string_view name);
  int weight = 1;     // its share of the steps, relative to the others'
  bool opens = true;  // its first turn takes what it needs
};

}  // namespace reprise::planner
