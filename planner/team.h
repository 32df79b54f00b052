// One search on several threads: each worker has a Search of its own, and what they found is exchanged at the
// end of each round, so that the answer depends on the seed and the steps alone, and not on the machine.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "planner/search.h"

namespace reprise::planner {

class Team {
 public:
  // `first` is the first worker's and outlives the team.
  explicit Team(Search& first);

  int size() const { return static_cast<int>(workers_.size()); }
  Search& search(int worker) { return *workers_[worker]; }

  // Calls `work` for every worker, each on a thread of its own (the first on this one), and waits for all.
  // Where a thread cannot be had, this one does its work too. What `work` throws is thrown again once all are
  // done, the first worker's before the second's; nothing is exchanged then.
  void Round(const std::function<void(int worker)>& work);

  // The one that has all that was found until the end of the last round.
  const Search& best() const { return *best_; }

 private:
  void Exchange();

  std::vector<Search*> workers_;
  const Search* best_;
  std::vector<std::unique_ptr<Search>> others_;
};

}  // namespace reprise::planner
