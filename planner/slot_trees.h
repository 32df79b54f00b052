// Two segment trees over slots: how high each is filled, and what it still has to take.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// A height for each slot, which only grows. Every operation is O(log slots).
class HeightTree {
 public:
  // A maximal run of slots of equal height; in a ring it may go past the end.
  struct Line {
    int32_t begin;
    int32_t length;
    int64_t height;
  };

  HeightTree(int32_t slots, bool ring);

  void Clear();
  // No slot of the range stays below `height`.
  void Raise(Range range, int64_t height);
  void Raise(const Line& line, int64_t height);
  int64_t Highest(Range range) const;
  // The first line of the least height.
  Line Lowest() const;
  // The lower one of a line's neighbours; kNoNeighbour when the line is everything.
  static constexpr int64_t kNoNeighbour = std::numeric_limits<int64_t>::max();
  int64_t LowerNeighbour(const Line& line) const;

 private:
  // Of a node: no slot below it is lower than `floor`, which the nodes below it need not know; `lowest` and
  // `highest` are of its slots, but for the floors above it.
  struct Node {
    int64_t floor = 0;
    int64_t lowest = 0;
    int64_t highest = 0;
  };

  void RaiseNode(int32_t node, int64_t height);
  void UpdateAbove(int32_t node);
  int64_t At(int32_t slot) const;
  int32_t EndOfLine(int32_t slot, int64_t height) const;
  int32_t BeginOfLine(int32_t slot, int64_t height) const;

  const int32_t slots_;
  const bool ring_;
  int32_t leaves_;
  std::vector<Node> nodes_;
};

// The bytes that each slot still has to take, and what waits for them to become fewer: a waiter at a slot
// wakes when its own height and the load of the slot together come down to a limit.
class LoadTree {
 public:
  explicit LoadTree(int32_t slots);

  void Reset(const std::vector<int64_t>& load);
  void Add(Range range, int64_t bytes);

  struct Peak {
    int64_t load;
    int32_t slot;
  };
  Peak Largest(Range range) const;

  // The least sum of a waiter's height and the load of its slot; kNobody without waiters.
  static constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();
  int64_t LeastWaiting() const { return nodes_[1].waiting; }
  void Wait(int32_t slot, int64_t height, int32_t who);
  // Takes out the waiter of LeastWaiting().
  int32_t Wake();

 private:
  // `added` to all slots below; `largest` and `waiting` count it, but not what was added above.
  struct Node {
    int64_t added = 0;
    int64_t largest = 0;
    int64_t waiting = kNobody;
  };
  struct Waiter {
    int64_t height;
    int32_t who;
    // The heap's top is the lowest, then the one of the lowest number.
    bool operator<(const Waiter& other) const {
      return height != other.height ? height > other.height : who > other.who;
    }
  };

  void AddToNode(int32_t node, int64_t bytes);
  void Update(int32_t node);
  void UpdateAbove(int32_t node);
  void SetWaiting(int32_t slot);
  Peak Search(int32_t node, Range of_node, Range range) const;

  const int32_t slots_;
  int32_t leaves_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Waiter>> waiters_;  // by slot, as heaps
};

}  // namespace reprise::planner
