// Sorting by small numbers, such as times, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::planner {

// Sorts `items` by `key_of(item)`, an uint64_t; equal ones keep their order. One pass for each 11 bits in
// which keys differ, none if the items are in order; needs their memory once more.
template <typename Item, typename KeyOf>
void RadixSort(std::vector<Item>& items, KeyOf key_of) {
  constexpr int kBits = 11;
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t all_bits = 0, common_bits = ~uint64_t{0}, last = 0;
  bool sorted = true;
  for (const Item& item : items) {
    const uint64_t key = key_of(item);
    all_bits |= key;
    common_bits &= key;
    sorted &= last <= key;
    last = key;
  }
  if (sorted) return;
  const uint64_t differing = all_bits & ~common_bits;
  std::vector<Item> to(items.size());
  for (int shift = 0; shift < 64; shift += kBits) {
    if ((differing >> shift & kMask) == 0) continue;
    std::array<size_t, kMask + 2> begin{};
    for (const Item& item : items) ++begin[(key_of(item) >> shift & kMask) + 1];
    for (size_t digit = 1; digit <= kMask; ++digit) begin[digit] += begin[digit - 1];
    for (const Item& item : items) to[begin[key_of(item) >> shift & kMask]++] = item;
    items.swap(to);
  }
}

}  // namespace reprise::planner
