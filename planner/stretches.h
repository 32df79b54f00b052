// Time cut into stretches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// Moments to cut the time of `instance` at, ascending, from 0 to the number of slots; between two are the
// stretches. From `least` to `most` ranges begin in each if possible, and each cut is made where the fewest
// bytes are in use on both sides of it; where nothing is, an eighth of `least` is enough. At most as many
// ranges are cut as begin in the stretch before, so that all stretches together stay linear in the size of
// the instance; where time has no such moment, a stretch is as long as it takes. O(n * most / least).
std::vector<int32_t> CutWhereQuiet(const Instance& instance, int32_t least, int32_t most);

// Which buffers lie in which stretch. Linear in the buffers and in what `crossing` returns for all stretches.
class Stretches {
 public:
  // `cuts` as from CutWhereQuiet.
  Stretches(const Instance& instance, std::vector<int32_t> cuts);

  int32_t count() const { return static_cast<int32_t>(cuts_.size()) - 1; }
  Range time(int32_t k) const { return {cuts_[k], cuts_[k + 1]}; }
  // The free buffers with all their ranges in stretch `k`.
  std::span<const int32_t> inside(int32_t k) const { return inside_.Of(k); }
  // The other ones that are in use there: those that cross a cut, and the pinned ones.
  std::span<const int32_t> across(int32_t k) const { return across_.Of(k); }
  // All that cross a cut or are pinned, each once.
  std::span<const int32_t> shared() const { return shared_; }

 private:
  struct Lists {
    std::vector<int32_t> first;  // in buffers, of each stretch
    std::vector<int32_t> buffers;
    std::span<const int32_t> Of(int32_t k) const {
      return std::span(buffers).subspan(first[k], first[k + 1] - first[k]);
    }
  };

  template <typename Inside, typename Across>
  void ForEach(const Instance& instance, Inside inside, Across across) const;

  const std::vector<int32_t> cuts_;
  Lists inside_;
  Lists across_;
  std::vector<int32_t> shared_;
};

}  // namespace reprise::planner
