#include "planner/team.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace reprise::planner {

Team::Team(Search& first) : workers_{&first}, best_(&first) {
  for (int worker = 1; worker < first.workers(); ++worker) {
    others_.push_back(std::make_unique<Search>(first, worker));
    workers_.push_back(others_.back().get());
  }
}

void Team::Round(const std::function<void(int)>& work) {
  Search::Race race;
  for (Search* search : workers_) search->Join(&race);
  std::vector<std::thread> threads;
  std::vector<int> here = {0};
  for (int worker = 1; worker < size(); ++worker) {
    try {
      threads.emplace_back(work, worker);
    } catch (const std::system_error&) {
      here.push_back(worker);
    }
  }
  for (int worker : here) work(worker);
  for (std::thread& thread : threads) thread.join();
  for (Search* search : workers_) search->Join(nullptr);
  Exchange();
}

// Among those that have the answer the first one to have it counts, and what the others found in the meantime
// does not: that depends on when they came to know.
void Team::Exchange() {
  const auto ahead = [](const Search* a, const Search* b) {
    return std::pair(a->won_after(), a->best_slab()) < std::pair(b->won_after(), b->best_slab());
  };
  Search& best = **std::min_element(workers_.begin(), workers_.end(), ahead);
  if (best.won_after() == Search::kNothing) {
    for (Search* search : workers_) best.Learn(*search);
  }
  for (Search* search : workers_) search->Learn(best);
  best_ = &best;
}

}  // namespace reprise::planner
