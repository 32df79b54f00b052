// The exact search: a placement of at most a given height, or the proof that there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "planner/exact_state.h"
#include "planner/problem.h"

namespace reprise::planner {

// The parts of the search that can be left out, to see what each is worth. None changes an answer.
struct ExactRules {
  bool not_first = true;  // ExactState::Propagate raises the floors of those that cannot lie lowest in a slot
  bool components = true;  // parts of the instance that have come to share no slot are solved one by one
  bool trouble = true;     // a strategy that goes where the failures are
  bool rivals = true;      // strategies that go where few buffers compete, and not only from the bottom up
  bool perturbed = true;   // after the first round, the orders of the strategies vary at random
  bool strategies = true;  // more than the first one
};

// A branch and bound with restarts, for small and hard instances: memory and the time of a node grow with the
// square of the buffers. The frame is that of MiniMalloc (Moffitt, *MiniMalloc: a lightweight memory
// allocator for hardware-accelerated machine learning*, ASPLOS 2023): buffers are placed from the bottom up,
// each resting on another. The branching is that of active schedules (Giffler and Thompson, 1960): a buffer
// either lies on its floor, or it rests on another one and has a new floor; see exact_state.h. So a node may
// branch on any buffer that nobody can come beneath, wherever it lies, and no order is needed to tell the
// placements apart.
//
// Search times are heavy-tailed: a strategy that needs a thousand nodes on one instance needs millions on the
// next. Several strategies therefore take turns with limits that grow; after the first round their orders
// are perturbed at random. Where it failed stays known over all of them.
class ExactSearch {
 public:
  static constexpr int32_t kMostBuffers = 2000;

  // What is built takes time and memory linear in buffers times ranges: there may be as many of these as
  // kMostBuffers have that all wrap, and more where the buffers are fewer.
  static bool CanLookAt(const Instance& instance);

  enum class Answer {
    kPlaced,
    kRefuted,  // no placement has a slab of at most the capacity
    kGaveUp,
  };

  // `instance` must outlive the search. Where it cannot be looked at, Decide() gives up.
  // Beside another search with another seed, one begins with the second round of strategies.
  ExactSearch(const Instance& instance, uint64_t seed, const ExactRules& rules = {}, bool beside = false);

  // Is there a placement of at most `capacity`? Gives up after `node_limit` nodes, or when `stop` says so; it
  // is told the steps worked since it was called last. Fills `offsets`, those of buffers not to be placed
  // too, if kPlaced. Asked again for the same capacity, it goes on where it gave up.
  Answer Decide(int64_t capacity, int64_t node_limit, const std::function<bool(int64_t steps)>& stop,
                std::vector<int64_t>& offsets);

  int64_t nodes() const { return nodes_; }  // of all calls

 private:
  enum class Order { kLifetime, kCrowdLifetime, kCrowdArea, kTimeInCrowds };
  enum class Choice {
    kLowest,        // the buffer with the lowest floor
    kFewestRivals,  // where the fewest buffers compete for the next place
    kTrouble,       // the same, weighed by how often the slots there have failed
  };
  struct Strategy {
    Order order;
    Choice choice;
    bool perturbed = false;  // in the first round already
  };
  enum class Outcome { kPlaced, kRefuted, kOutOfNodes };
  struct Items {  // a part of pool_
    size_t begin;
    size_t end;
  };

  static const Strategy kStrategies[];

  void Restart(int64_t capacity);
  Outcome TakeTurn(int64_t last_node);
  void SetRanks(Order order, bool perturbed);
  std::pair<double, double> KeyOf(int32_t buffer, Order order, bool perturbed);
  double Noise(double width);
  void NoteFailure(int32_t slot);
  Outcome Run(int64_t limit);
  Outcome Extend(Items items);
  Outcome Branch(Items items);
  bool Split(Items items, std::vector<Items>& parts);
  Outcome ExtendAll(const std::vector<Items>& parts);
  int32_t Choose(Items items);
  int32_t ChooseLowest(Items items);
  int32_t ChooseAmongRivals(Items items);
  double Score(int32_t buffer, int32_t rivals) const;
  void FindLeastEnds(Items items);
  bool OutOfNodes();
  int64_t steps() const;  // of all calls
  void Poll();
  std::span<const int32_t> In(Items items) const {
    return std::span(pool_).subspan(items.begin, items.end - items.begin);
  }

  const Instance& instance_;
  const ExactRules rules_;
  const size_t first_turn_;
  std::mt19937_64 random_;
  ExactState state_;
  std::vector<int64_t> full_load_;  // by slot, of the free buffers
  int64_t largest_load_ = 0;
  std::vector<int32_t> rank_;       // by buffer; a permutation: no ties
  std::vector<double> trouble_;     // by slot: how often it has failed, the late failures counting more
  double failure_ = 1;              // what the next failure adds
  std::vector<int32_t> pool_;       // stack of the items of all open nodes
  std::vector<int64_t> least_end_;  // scratch, by slot
  std::vector<int32_t> crossing_;   // scratch, by slot
  Choice choice_ = Choice::kLowest;
  int64_t nodes_ = 0;

  // Where Decide() goes on.
  int64_t capacity_ = -1;
  bool refuted_all_ = false;
  size_t turn_ = 0;
  int64_t turn_limit_ = 0;

  int64_t stop_at_node_ = 0;
  int64_t looks_ = 0;  // beside the state's
  int64_t steps_told_ = 0;
  bool stopped_ = false;
  const std::function<bool(int64_t)>* stop_ = nullptr;
};

}  // namespace reprise::planner
