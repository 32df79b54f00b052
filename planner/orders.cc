#include "planner/orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace reprise::planner {
namespace {

using Key = std::array<double, 3>;  // larger goes first

// The largest load in a range of slots, by a tree over the slots.
class LargestLoad {
 public:
  explicit LargestLoad(const Instance& instance)
      : leaves_(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(instance.slots, 1))))),
        largest_(2 * static_cast<size_t>(leaves_), 0) {
    const std::vector<int64_t> load = LoadOfSlots(instance);
    std::copy(load.begin(), load.end(), largest_.begin() + leaves_);
    for (int32_t node = leaves_ - 1; node > 0; --node) {
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
    }
  }

  int64_t In(int32_t begin, int32_t end) const {
    int64_t largest = 0;
    for (begin += leaves_, end += leaves_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) largest = std::max(largest, largest_[begin++]);
      if (end % 2 == 1) largest = std::max(largest, largest_[--end]);
    }
    return largest;
  }

 private:
  int32_t leaves_;
  std::vector<int64_t> largest_;
};

template <typename KeyOf>
std::vector<int32_t> SortByKeys(const Instance& instance, KeyOf key_of) {
  std::vector<Key> keys(instance.buffers());
  std::vector<int32_t> order = FreeBuffers(instance);
  for (const int32_t i : order) keys[i] = key_of(i);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  return order;
}

}  // namespace

std::vector<int32_t> SortedBy(Order order, const Instance& instance) {
  const auto size = [&](int32_t i) { return static_cast<double>(instance.room(i)); };
  const auto lifetime = [&](int32_t i) { return static_cast<double>(instance.length(i)); };
  const auto start = [&](int32_t i) { return -static_cast<double>(instance.begin[i]); };  // early goes first
  std::vector<int64_t> crowd;
  if (order == Order::kCrowdSize || order == Order::kCrowdLifetime) crowd = CrowdOf(instance);
  const auto crowd_of = [&](int32_t i) { return static_cast<double>(crowd[i]); };
  return SortByKeys(instance, [&](int32_t i) -> Key {
    switch (order) {
      case Order::kSize:
        return {size(i), lifetime(i), start(i)};
      case Order::kArea:
        return {size(i) * lifetime(i), size(i), start(i)};
      case Order::kLifetime:
        return {lifetime(i), size(i), start(i)};
      case Order::kCrowdSize:
        return {crowd_of(i), size(i), lifetime(i)};
      case Order::kCrowdLifetime:
        return {crowd_of(i), lifetime(i), size(i)};
    }
    return {};
  });
}

std::vector<int64_t> CrowdOf(const Instance& instance) {
  const LargestLoad load(instance);
  std::vector<int64_t> crowd(instance.buffers(), 0);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    for (const Range& range : instance.ranges(i)) {
      crowd[i] = std::max(crowd[i], load.In(range.begin, range.end));
    }
  }
  return crowd;
}

std::vector<int32_t> SortedBy(const Classes& classes, const Instance& instance) {
  // One number a buffer, smaller goes first: class, lifetime's octave, start.
  constexpr int kStartBits = 31, kOctaveBits = 6;
  constexpr double kLargestClass = 1 << 16;
  std::vector<std::pair<uint64_t, int32_t>> keys;
  keys.reserve(instance.buffers());
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!instance.is_free(i)) continue;
    const double octave = std::log2(static_cast<double>(instance.length(i)));
    const double octaves = std::log2(static_cast<double>(instance.room(i))) + classes.exponent * octave;
    uint64_t key =
        static_cast<uint64_t>(kLargestClass - std::floor(classes.per_octave * octaves + classes.phase));
    key <<= kOctaveBits;
    if (classes.by_lifetime) key |= static_cast<uint64_t>(kStartBits - std::floor(octave + classes.phase));
    keys.emplace_back(key << kStartBits | static_cast<uint64_t>(instance.begin[i]), i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int32_t> order;
  order.reserve(keys.size());
  for (const auto& [key, buffer] : keys) order.push_back(buffer);
  return order;
}

}  // namespace reprise::planner
