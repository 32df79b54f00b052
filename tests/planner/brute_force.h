// What the least slab of a tiny problem is, found in the plainest way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/types.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {

// The least slab of all: first-fit in every order of the free buffers, since first-fit from the bottom to the
// top of an optimal placement is optimal itself. Shares nothing with the solvers.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem), offsets_(problem.buffers.size()) {
    for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = problem.buffers[i].pinned;
  }

  Bytes Least() {
    Extend(Bytes(0));
    return best_;
  }

 private:
  void Extend(Bytes slab) {
    if (slab >= best_) return;
    bool complete = true;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] || problem_.buffers[i].outside) continue;
      complete = false;
      const Offset offset = Lowest(problem_.buffers[i]);
      offsets_[i] = offset;
      Extend(std::max(slab, offset + problem_.buffers[i].size - Offset(0)));
      offsets_[i].reset();
    }
    if (complete) best_ = slab;
  }

  Offset Lowest(const Buffer& buffer) const {
    Offset offset(0);
    for (size_t k = 0; k < offsets_.size();) {
      const Buffer& other = problem_.buffers[k];
      if (offsets_[k] && ShareBytes(buffer, offset, other, *offsets_[k]) &&
          ShareTick(problem_, buffer, other)) {
        offset = RoundUp(*offsets_[k] + other.size, buffer.alignment);
        k = 0;
      } else {
        ++k;
      }
    }
    return offset;
  }

  const Problem& problem_;
  std::vector<std::optional<Offset>> offsets_;
  Bytes best_{int64_t{1} << 60};
};

}  // namespace reprise::planner
