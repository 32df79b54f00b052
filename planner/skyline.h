// A skyline that looks ahead: nothing is laid where it would leave too little room for the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <vector>

#include "planner/first_fit.h"
#include "planner/search.h"
#include "planner/slot_trees.h"
#include "planner/unplaced.h"

namespace reprise::planner {

// Lays the buffers from the bottom up, as best-fit does (Burke, Kendall and Whitwell, 2004): of those that
// can lie lowest now, the one of the best rank. What a buffer leaves free below itself is lost. Therefore it
// is laid only if above it, at every moment of its lifetime, there is room below a goal for all that is still
// to be laid at that moment (itself included); otherwise it waits until something that overlaps it is placed.
// When everything waits, the goal is raised by the least that frees somebody.
//
// The buffers that never had to wait need no look until their turn: the lowest line of the skyline is asked
// for the best-ranked buffer within it, and lifted to its lower neighbour when there is none. One that waits
// does so at the slot that lacks the most, and is not looked at until that slot no longer does. Thus each
// buffer costs a few operations of O(log n), and rarely more. Obstacles, too, are laid when the skyline
// reaches them; a buffer leaps over those in its way. With obstacles and mixed alignments, some buffers come
// to lie above the line that holds them, and are kept aside by their offset.
//
// The tables are built once and serve many orders. `instance` must outlive this.
class Skyline {
 public:
  explicit Skyline(const Instance& instance);

  // Lays the free buffers, best-ranked first in `order`, and fills `offsets`. `goal` is the height to stay
  // within. Gives up (kTooHigh) when it would have to be raised above `limit`, or, where there is a limit, when
  // so much waits that each buffer is looked at many times, which takes longer than other tries that may help.
  FirstFit::Outcome Place(std::span<const int32_t> order, int64_t goal, int64_t limit, Search& search,
                          std::vector<int64_t>& offsets);

  int64_t looks() const { return looks_; }

 private:
  struct Ready {
    int64_t offset;  // or less than it has become
    int32_t rank;
    int32_t buffer;
    bool operator<(const Ready& other) const {  // std::priority_queue has the largest on top
      return offset != other.offset ? offset > other.offset : rank > other.rank;
    }
  };
  struct Need {
    int64_t height;  // of the goal, for the buffer to be laid now
    int64_t offset;
    int32_t slot;  // that needs it
  };

  void Begin(std::span<const int32_t> order, int64_t goal);
  bool LayNext();
  bool LayReady(const HeightTree::Line* line);
  void LayFromLine(const HeightTree::Line& line);
  int32_t BestWithin(const HeightTree::Line& line);
  int64_t LowestOffset(int32_t buffer);
  Need NeedOf(int32_t buffer, int64_t offset) const;
  void LayOrWait(int32_t buffer, int64_t offset);
  void Lay(int32_t buffer, int64_t offset);
  void WakeAll();
  void RaiseGoal();
  void LayObstacles(int64_t height);

  const Instance& instance_;
  const int64_t grain_;  // all alignments are multiples of it, and all heights
  std::vector<int64_t> heights_;
  std::vector<int32_t> free_;
  std::vector<int32_t> obstacles_;  // by offset
  std::unique_ptr<FirstFit> around_obstacles_;
  HeightTree floors_;
  HeightTree lines_;  // floors_, but for lines that were lifted because no buffer fits within them
  LoadTree loads_;
  Unplaced unplaced_;
  std::vector<int32_t> rank_;
  std::priority_queue<Ready> ready_;
  size_t next_obstacle_ = 0;
  size_t laid_ = 0;
  int64_t goal_ = 0;
  int64_t looks_ = 0;
  std::vector<int64_t> offsets_;
};

}  // namespace reprise::planner
