// Regions of addresses beside blocks that come in address order: one walk through both, however many there are of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.h"

namespace reprise::replay {

using Region = std::pair<Offset, Offset>;  // begin, end

class RegionWalk {
 public:
  explicit RegionWalk(std::vector<Region> regions) : regions_(std::move(regions)) {
    std::sort(regions_.begin(), regions_.end());
  }

  // Calls visit(region) for each that begins at `at` or before and has not been visited. `at` never falls.
  template <typename Visit>
  void To(Offset at, Visit visit) {
    for (; next_ < regions_.size() && regions_[next_].first <= at; ++next_) visit(regions_[next_]);
  }

 private:
  std::vector<Region> regions_;
  size_t next_ = 0;
};

}  // namespace reprise::replay
