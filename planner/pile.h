// Buffers that lie somewhere below a height, and what it would cost to make room for one more.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// The buffers of an instance, some of them placed, none overlapping. Lifetimes are arcs of the ring, gaps
// included. Two lists, sorted by the bottoms and by the tops, let one sweep over the heights find what a
// buffer would overlap wherever it lay. The lists are cut into shelves by height, so that putting and taking
// one, and what is in the way at a height, look at a few shelves only. The cheapest place is linear in the
// number of those placed.
class Pile {
 public:
  // Of a buffer that cannot be moved; what all others cost together is less.
  static constexpr int64_t kImmovable = int64_t{1} << 46;

  // For heights of up to about `height`; what is above lies on one shelf.
  Pile(const Instance& instance, int64_t height);

  void Clear();
  // `cost` is that of taking it out again.
  void Put(int32_t buffer, int64_t offset, int64_t cost);
  void Take(int32_t buffer);
  bool has(int32_t buffer) const { return offset_[buffer] != kNowhere; }
  int64_t offset(int32_t buffer) const { return offset_[buffer]; }

  struct Spot {
    int64_t offset;
    int64_t cost;  // of those in the way
  };
  // Where it costs the least to put `buffer` so that it ends at `height` or below: the lowest such place of
  // those where it rests on the ground or on another one. Costs kImmovable or more when there is none.
  Spot Cheapest(int32_t buffer, int64_t height);
  // Those in the way of `buffer` at `offset`.
  const std::vector<int32_t>& InTheWay(int32_t buffer, int64_t offset);

  int64_t looks() const { return looks_; }  // at an entry of a list, by a sweep once more, in all

 private:
  static constexpr int64_t kNowhere = -1;

  struct Entry {
    int64_t height;
    int64_t cost;
    int32_t begin;
    int32_t length;
    int32_t buffer;
  };
  struct Edge {
    int64_t height;
    int64_t cost;
  };
  using Shelf = std::vector<Entry>;
  using Shelves = std::vector<Shelf>;

  bool Together(int32_t begin, int32_t length, const Entry& other) const {
    int32_t after = other.begin - begin;  // the other's start, counted from this one's
    after += after < 0 ? slots_ : 0;
    return (after < length) | (slots_ - after < other.length);
  }
  size_t ShelfOf(int64_t height) const;
  void Insert(Shelves& shelves, Entry entry);
  void Erase(Shelves& shelves, int64_t height, int32_t buffer);
  void Meeting(int32_t buffer, const Shelves& shelves, int64_t below, std::vector<Edge>& edges);

  const Instance& instance_;
  const int32_t slots_;
  const int64_t shelf_height_;
  int64_t largest_ = 0;  // size
  Shelves bottoms_, tops_;
  std::vector<int64_t> offset_;      // by buffer
  std::vector<Edge> lower_, upper_;  // scratch: of those that share a slot with the buffer at hand
  std::vector<int32_t> in_the_way_;
  int64_t looks_ = 0;
};

}  // namespace reprise::planner
