// What is free below a height.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

namespace reprise::planner {

// The free addresses of [0, height), as ranges in ascending order with something in between any two.
class FreeAddresses {
 public:
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

  explicit FreeAddresses(int64_t height) {
    if (height > 0) begins_.emplace(height, 0);
  }

  // The least multiple of `alignment` from `from` on where `bytes` are free, or kNowhere. O(log ranges), and one look for
  // each range on the way.
  int64_t Lowest(int64_t from, int64_t bytes, int64_t alignment);
  // [begin, end) is in use from now on: all of it is free, or what of it is not stays in use.
  void Take(int64_t begin, int64_t end);
  // [begin, end), all of it in use and below the height, is free.
  void Give(int64_t begin, int64_t end);

  int64_t looks() const { return looks_; }  // at a range, by Lowest, in all

 private:
  // Of the ranges, by their ends: most of what is taken is at the begin of one.
  std::map<int64_t, int64_t> begins_;
  int64_t looks_ = 0;
};

}  // namespace reprise::planner
