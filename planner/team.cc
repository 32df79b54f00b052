#include "planner/team.h"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/exceptions.h"

namespace reprise::planner {

Team::Team(Search& first) : workers_{&first}, best_(&first) {
  for (int worker = 1; worker < first.workers(); ++worker) {
    others_.push_back(std::make_unique<Search>(first, worker));
    workers_.push_back(others_.back().get());
  }
}

void Team::Round(const std::function<void(int)>& work) {
  std::vector<std::thread> threads(size());
  std::vector<std::exception_ptr> thrown(size());
  Search::Race race;
  for (Search* search : workers_) search->Join(&race);
  const auto guarded = [&](int worker) {
    if (!MakeReadyToThrow()) {
      thrown[worker] = std::make_exception_ptr(std::bad_alloc());
      return;
    }
    try {
      work(worker);
    } catch (...) {  // what leaves a thread ends the process
      thrown[worker] = std::current_exception();
    }
  };
  for (int worker = 1; worker < size(); ++worker) {
    try {
      threads[worker] = std::thread(guarded, worker);
    } catch (const std::exception&) {  // no thread, or no memory for one
    }
  }
  for (int worker = 0; worker < size(); ++worker) {
    if (!threads[worker].joinable()) guarded(worker);
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  for (Search* search : workers_) search->Join(nullptr);
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
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
