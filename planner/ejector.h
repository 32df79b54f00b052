// The moves of ejection search: who finds no room makes some, and who is in the way of that looks for room in turn.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "planner/pile.h"
#include "planner/problem.h"

namespace reprise::planner {

// The buffers of an instance, some of them placed, none overlapping, and some that wait for a place. It costs its price
// times its worth to eject one. Worth is the root of its share of the whole: by the area alone the search only
// shuffles small ones, and with none at all it takes the large ones out. The price goes up each time that one finds
// no free place, so that the search does not go in circles. Pinned ones are never ejected.
class Ejector {
 public:
  // `height` as for Pile; `area`: of the whole, in bytes times slots.
  Ejector(const Instance& instance, int64_t height, double area);

  // Nobody is placed or waits, and all prices are as at first.
  void Clear();
  void Put(int32_t buffer, int64_t offset);
  void Wait(int32_t buffer) { waiting_.emplace(worth_[buffer], buffer); }
  bool anybody_waits() const { return !waiting_.empty(); }
  // Whoever of those that wait is worth the most is put where the ones in its way cost the least, so that it ends at
  // `height` or below; these wait then. False: there is no such place, and it waits on.
  bool Move(int64_t height);

  const Pile& pile() const { return pile_; }

 private:
  const Instance& instance_;
  Pile pile_;
  std::vector<int64_t> worth_;
  std::vector<int64_t> price_;
  std::priority_queue<std::pair<int64_t, int32_t>> waiting_;  // worth, buffer
};

}  // namespace reprise::planner
