// The orders in which first-fit takes the buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// Every order ranks by a first key, breaks ties by further ones, and in the end by index. "Crowd" is the
// largest load during a buffer's lifetime: those who live through the peak are the hardest to place and go
// first.
enum class Order {
  kSize,           // size
  kArea,           // size x lifetime
  kLifetime,       // lifetime, then size
  kCrowdSize,      // crowd, size, lifetime
  kCrowdLifetime,  // crowd, lifetime, size
  kSizeClass,      // size by quarter octaves, then the start
};

// The free buffers of `instance` in that order. O(n log n).
std::vector<int32_t> SortedBy(Order order, const Instance& instance);

}  // namespace reprise::planner
