#include "tests/simcuda/driver/ranges.h"

namespace sim {

std::optional<uint64_t> Ranges::Take(uint64_t size, uint64_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    uint64_t at = (range->first + alignment - 1) / alignment * alignment;
    if (at > range->second || range->second - at < size) continue;
    Cut(range, at, size);
    return at;
  }
  return std::nullopt;
}

bool Ranges::TakeAt(uint64_t at, uint64_t size) {
  auto range = free_.upper_bound(at);
  if (range == free_.begin()) return false;
  --range;
  if (at > range->second || range->second - at < size) return false;
  Cut(range, at, size);
  return true;
}

void Ranges::Give(uint64_t at, uint64_t size) {
  uint64_t end = at + size;
  auto next = free_.upper_bound(at);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == at) {
    std::prev(next)->second = end;
  } else {
    free_[at] = end;
  }
}

void Ranges::Cut(std::map<uint64_t, uint64_t>::iterator range, uint64_t at, uint64_t size) {
  uint64_t begin = range->first;
  uint64_t end = range->second;
  free_.erase(range);
  if (begin < at) free_[begin] = at;
  if (at + size < end) free_[at + size] = end;
}

}  // namespace sim
