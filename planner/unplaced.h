// Which of the buffers not yet placed is the best one for a window of time?
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// The unplaced buffers as points (begin, end), to be asked for the best-ranked one within a window of slots.
// A k-d tree in heap order: each node has the bounding box of the unplaced buffers below it and their best
// rank, which together decide whether the node can hold anything better than what was found. Built once, it
// serves many orders of the same buffers.
class Unplaced {
 public:
  static constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

  // `heights`, by buffer: what each one needs of a window's room. O(n log^2 n).
  Unplaced(const Instance& instance, std::span<const int32_t> buffers, std::span<const int64_t> heights);

  // Puts all buffers back; `order`, of the same ones, ranks them, best first. O(n).
  void Reset(std::span<const int32_t> order);

  bool empty() const { return nodes_[1].rank == kNoRank; }
  int32_t buffer(int32_t rank) const { return by_rank_[rank]; }

  // The best rank of a buffer with begin >= `low`, end <= `high` and height <= `room`, or kNoRank.
  int32_t Find(int32_t low, int32_t high, int64_t room);

  // Adds all such buffers to `buffers`, in no order. False, and only some of them are there, if it would have
  // more than `most`.
  bool FindAll(int32_t low, int32_t high, int64_t room, size_t most, std::vector<int32_t>& buffers);

  void Take(int32_t buffer);

 private:
  struct Node {
    int32_t min_begin = kNoRank, max_begin = -1;
    int32_t min_end = kNoRank, max_end = -1;
    int32_t rank = kNoRank;
    int64_t min_height = std::numeric_limits<int64_t>::max(), max_height = -1;
  };

  void Update(int32_t node);
  void Divide(std::span<const int32_t> buffers);

  const Instance& instance_;
  std::span<const int64_t> heights_;
  int32_t leaves_;
  std::vector<Node> nodes_;
  std::vector<int32_t> leaf_of_;
  std::vector<int32_t> by_rank_;
  std::vector<int32_t> stack_;
};

}  // namespace reprise::planner
