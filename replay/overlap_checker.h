// Watches placements and counts those that overlap live memory. Shares nothing with the arena that it judges.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "base/units.h"

namespace reprise::replay {

class OverlapChecker {
 public:
  // [offset, offset + bytes) has been handed out; bytes of 0 count as 1.
  void OnPlaced(Offset offset, Bytes bytes) {
    const int64_t begin = offset.count();
    const int64_t end = begin + (bytes.count() > 0 ? bytes.count() : 1);
    const auto after = live_.upper_bound(begin);
    const bool hits_after = after != live_.end() && after->first < end;
    const bool hits_before = after != live_.begin() && std::prev(after)->second > begin;
    if (hits_after || hits_before) ++overlaps_;
    live_[begin] = end;
  }
  void OnFreed(Offset offset) { live_.erase(offset.count()); }

  int64_t overlaps() const { return overlaps_; }

 private:
  std::map<int64_t, int64_t> live_;  // begin -> end
  int64_t overlaps_ = 0;
};

}  // namespace reprise::replay
