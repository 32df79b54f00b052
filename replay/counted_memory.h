// A memory source without memory: it counts. For `simulate` and for tests of the arena's policy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "replay/memory_source.h"

namespace reprise::replay {

class CountedMemory : public MemorySource {
 public:
  // Reserves `reserve` bytes; refuses to hold more than `capacity` committed.
  CountedMemory(Bytes granule, Bytes reserve, Bytes capacity = Bytes(std::numeric_limits<int64_t>::max()))
      : granule_(granule), count_(reserve / granule), capacity_(capacity) {}

  Bytes granule() const override { return granule_; }
  int64_t granule_count() const override { return count_; }
  bool Commit(int64_t first, int64_t count) override {
    if (granule_ * (committed_ + count) > capacity_) return false;
    committed_ += count;
    ++commits_;
    peak_ = std::max(peak_, committed_);
    return true;
  }
  void Release(int64_t first, int64_t count) override { committed_ -= count; }

  Bytes committed() const { return granule_ * committed_; }
  int64_t commits() const { return commits_; }     // calls that took memory
  Bytes peak() const { return granule_ * peak_; }  // the most ever committed at once

 private:
  const Bytes granule_;
  const int64_t count_;
  const Bytes capacity_;
  int64_t committed_ = 0;
  int64_t peak_ = 0;
  int64_t commits_ = 0;
};

}  // namespace reprise::replay
