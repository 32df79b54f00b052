// The state of one Solve: the best placement so far, and when to stop looking for a better one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "planner/interval_lists.h"
#include "planner/problem.h"
#include "planner/types.h"

namespace reprise::planner {

// The height of a placement, given as one offset a buffer: the highest end of a free buffer.
int64_t SlabOf(const Instance& instance, std::span<const int64_t> offsets);

// The free buffers from the bottom to the top. First-fit in this order puts none of them higher than
// `offsets` does.
std::vector<int32_t> InOrderOfOffsets(const Instance& instance, std::span<const int64_t> offsets);

// Solvers say what they have worked, in steps, at least every few dozen buffers, and return once they are
// told to stop; they hand in every placement they complete. A step is about a tenth of a microsecond: an
// interval or a node looked at. Used by one thread; team.h has several.
class Search {
 public:
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();

  // Of a round in which several search side by side: after how many steps the first of them had the answer.
  // The others stop, but not before they have worked as much: so which one is first depends on no clock.
  struct Race {
    std::atomic<int64_t> won_after{kNothing};
  };

  // `instance` and the budget's flag must outlive the search. Placements of at most `target` bytes are good
  // enough. Either the target is the bound that no placement is below, and rises with it; or it `decides`:
  // all that is asked is whether it can be reached.
  Search(const Instance& instance, int64_t target, const Budget& budget, bool decides = false);

  // A search within another one, which must outlive it: for a part of the problem, with the other's time,
  // steps and seed. Once the whole has a placement, the part may stop without one.
  Search(const Instance& instance, int64_t target, Search& whole);

  // A search beside `first`, which is worker 0, that knows what that one has found.
  Search(const Search& first, int worker);

  // From here on with others, or, where it is null, alone again.
  void Join(Race* race);
  // The steps since Join() after which the answer was there, or kNothing.
  int64_t won_after() const { return won_after_; }
  // Takes over what `other`, which works on the same instance, has found.
  void Learn(const Search& other);

  // Counts `steps` of work. Should the solver return? Neither time nor steps are a reason as long as there is
  // no placement.
  bool Stop(int64_t steps = 0);
  bool cancelled() const;

  // The solver that runs next gets so many steps, of those that the budget leaves.
  void Grant(int64_t steps);
  int64_t granted() const { return granted_until_ - steps_; }  // that are left
  // Is the whole search over, and not just what was granted?
  bool Over() const;

  // Keeps `offsets` if they are better than the best so far; as long as a buffer has none they are no placement
  // (Instance::kFree), and are not kept. `solver` must have static lifetime. `order` is
  // the order of the free buffers in which first-fit leads to these offsets or lower ones; for a solver that
  // does not have one, InOrderOfOffsets() is, which an empty one stands for.
  void Offer(std::span<const int64_t> offsets, std::string_view solver, std::span<const int32_t> order = {});

  // Tells that no placement has `height` or less.
  void Refute(int64_t height);

  const Instance& instance() const { return instance_; }
  // Memory for first-fit that is run once, kept for the next one: fresh pages are a good part of its cost.
  IntervalLists& memory() { return whole_ != nullptr ? whole_->memory() : memory_; }
  int64_t refuted() const { return refuted_; }  // the highest height of which Refute() was told, or -1
  bool decides() const { return decides_; }     // only whether the target can be reached is asked
  int64_t target() const { return target_; }
  uint64_t seed() const { return budget_.seed + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(worker_); }
  int worker() const { return worker_; }    // from 0
  int workers() const { return workers_; }  // as many as the budget has threads
  bool on(std::string_view rule) const { return budget_.rules.on(rule); }
  int64_t best_slab() const { return best_slab_; }  // kNothing before the first placement
  const std::vector<int64_t>& best() const { return best_; }
  const std::vector<int32_t>& best_order();
  std::string_view best_solver() const { return best_solver_; }
  double seconds() const;  // since the search began
  int64_t steps() const { return steps_; }

 private:
  void Count(int64_t steps);
  bool HasPlacement() const;
  bool Granted() const { return steps_ < granted_until_; }
  // Is it time to return what there is?
  bool Spent() const;
  bool Answered() const { return best_slab_ <= target_ || out_of_reach_; }
  void NoteAnswer();

  const Instance& instance_;
  Search* const whole_ = nullptr;
  int worker_ = 0;
  const int workers_ = 1;
  Race* race_ = nullptr;
  int64_t race_began_ = 0;  // in steps
  int64_t won_after_ = kNothing;
  int64_t target_;
  int64_t refuted_ = -1;
  const bool decides_;
  const Budget budget_;
  const std::chrono::steady_clock::time_point begin_;
  int64_t best_slab_ = kNothing;
  std::vector<int64_t> best_;
  std::vector<int32_t> best_order_;
  std::string_view best_solver_;
  IntervalLists memory_;
  int64_t steps_ = 0;
  int64_t granted_until_ = kNothing;
  int64_t next_look_ = 0;  // at the clock, in steps
  bool out_of_time_ = false;
  bool out_of_reach_ = false;
};

}  // namespace reprise::planner
