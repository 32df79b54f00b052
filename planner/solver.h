// What a member of the portfolio is.
#pragma once

#include <functional>
#include <string_view>

#include "planner/search.h"

namespace reprise::planner {

// A solver at work. Each call offers to the search whatever it finds until search.Stop(), and goes on where
// the last one was stopped. False: it has nothing more to offer, and is not to be called again.
using Turn = std::function<bool()>;

// Shares of a thread's steps, relative to those of the others on it; 0 where the solver does not run.
struct Shares {
  int alone = 1;  // of the only thread
  int first = 1;  // of two
  int second = 1;
};

// Where a solver's first turn takes what it needs, as it is cheap; on lines, up to a limit, as nothing better is there yet.
// Once: it is cheap, and has its only turn right behind the first answer.
enum class Opens { kNever, kOnLines, kAlways, kOnce };

struct Solver {
  std::string_view name;  // static; stands in plans and on the command line, and is a rule (rules.h)
  Turn (*begin)(Search& search, std::string_view name);
  Shares shares{};
  Opens opens = Opens::kAlways;
  // Otherwise it cannot be asked alone: it only refutes heights, or has no answer to some problems.
  bool places = true;
  Shares on_cycles = shares;  // where time is a ring; `shares` where it is a line
};

}  // namespace reprise::planner
