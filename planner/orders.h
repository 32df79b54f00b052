// The orders in which first-fit takes the buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// Every order ranks by a first key, breaks ties by further ones, and in the end by index. "Size" is
// Instance::room: who may begin at few offsets only is as hard to place as a larger one. "Crowd" is the
// largest load during a buffer's lifetime: those who live through the peak are the hardest to place and go
// first.
enum class Order {
  kSize,           // size
  kArea,           // size x lifetime
  kLifetime,       // lifetime, then size
  kCrowdSize,      // crowd, size, lifetime
  kCrowdLifetime,  // crowd, lifetime, size
};

// The free buffers of `instance` in that order. O(n log n).
std::vector<int32_t> SortedBy(Order order, const Instance& instance);

// The crowd of each buffer, pinned ones counted. O(n log n).
std::vector<int64_t> CrowdOf(const Instance& instance);

// Classes of buffers that are much alike, the largest first; within a class they come by their start. What is
// alike follows upon each other at one offset, as in an allocator with size classes, even if the sizes vary.
// How coarse the classes are and where their borders lie decides which buffers are parted, and no choice is
// good everywhere: there are many to try.
struct Classes {
  double per_octave = 4;     // of size * lifetime^exponent
  double phase = 0;          // moves the borders; in [0, 1)
  double exponent = 0;       // what a long life counts
  bool by_lifetime = false;  // within a class, octaves of the lifetime, the longest first, before the start
};

std::vector<int32_t> SortedBy(const Classes& classes, const Instance& instance);

}  // namespace reprise::planner
