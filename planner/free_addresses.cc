#include "planner/free_addresses.h"

#include <algorithm>
#include <iterator>

#include "planner/problem.h"

namespace reprise::planner {

int64_t FreeAddresses::Lowest(int64_t from, int64_t bytes, int64_t alignment) {
  for (auto range = begins_.upper_bound(from); range != begins_.end(); ++range) {
    ++looks_;
    const int64_t at = RoundUpTo(std::max(range->second, from), alignment);
    if (bytes <= range->first - at) return at;
  }
  return kNowhere;
}

void FreeAddresses::Take(int64_t begin, int64_t end) {
  auto range = begins_.upper_bound(begin);
  while (range != begins_.end() && range->second < end) {
    if (range->second < begin) begins_.emplace_hint(range, begin, range->second);
    if (range->first > end) {
      range->second = end;
      return;
    }
    range = begins_.erase(range);
  }
}

void FreeAddresses::Give(int64_t begin, int64_t end) {
  auto after = begins_.lower_bound(begin);
  if (after != begins_.end() && after->first == begin) {
    begin = after->second;
    after = begins_.erase(after);
  }
  if (after != begins_.end() && after->second == end) {
    after->second = begin;
  } else {
    begins_.emplace_hint(after, end, begin);
  }
}

}  // namespace reprise::planner
