// What the least slab of a tiny problem is, and what the least cost where crossings are priced, found in the
// plainest way. Shares nothing with the solvers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "planner/types.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {

// The least slab of all: first-fit in every order of the free buffers, since first-fit from the bottom to the
// top of an optimal placement is optimal itself. Lanes share no bytes where reuse is forbidden, and do not
// matter otherwise.
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
      if (offsets_[k] && ShareBytes(buffer, offset, other, *offsets_[k]) && AreApart(buffer, other)) {
        offset = RoundUp(*offsets_[k] + other.size, buffer.alignment);
        k = 0;
      } else {
        ++k;
      }
    }
    return offset;
  }

  bool AreApart(const Buffer& a, const Buffer& b) const {
    const bool lanes_are = problem_.reuse == Reuse::kForbidden && !a.pinned && !b.pinned && a.lane != b.lane;
    return lanes_are || ShareTick(problem_, a, b);
  }

  const Problem& problem_;
  std::vector<std::optional<Offset>> offsets_;
  Bytes best_{int64_t{1} << 60};
};

// CountCrossings, byte by byte: a buffer, or the part of one between two gaps, crosses once when any of its
// bytes is next used on another lane.
inline int64_t CrossingsByByte(const Problem& problem, const std::vector<std::optional<Offset>>& offsets) {
  struct Part {
    size_t index;
    int32_t lane;
  };
  std::map<int64_t, std::map<int64_t, Part>> uses;  // by byte, then by the tick at which they begin
  size_t parts = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.pinned || buffer.outside) continue;
    for (size_t part = 0; part <= buffer.gaps.size(); ++part, ++parts) {
      const int64_t begin = (part == 0 ? buffer.lower : buffer.gaps[part - 1].upper).count();
      for (int64_t byte = 0; byte < buffer.size.count(); ++byte) {
        uses[offsets[i]->count() + byte][problem.period ? begin % *problem.period : begin] = {parts,
                                                                                              buffer.lane};
      }
    }
  }
  std::vector<bool> crosses(parts);
  for (const auto& [byte, by_tick] : uses) {
    for (auto use = by_tick.begin(); use != by_tick.end(); ++use) {
      auto next = std::next(use);
      if (next == by_tick.end() && problem.period) next = by_tick.begin();
      if (next != by_tick.end() && next->second.lane != use->second.lane) crosses[use->second.index] = true;
    }
  }
  return std::count(crosses.begin(), crosses.end(), true);
}

// The least slab plus crossings times price of all placements no higher than `highest`.
class LeastCost {
 public:
  LeastCost(const Problem& problem, Bytes highest)
      : problem_(problem), highest_(highest), offsets_(problem.buffers.size()) {
    for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = problem.buffers[i].pinned;
  }

  int64_t Find() {
    Extend(0, Bytes(0));
    return best_;
  }

 private:
  void Extend(size_t i, Bytes slab) {
    if (slab.count() >= best_) return;
    if (i == offsets_.size()) {
      const int64_t crossings = CrossingsByByte(problem_, offsets_);
      best_ = std::min(best_, slab.count() + crossings * problem_.crossing_price.count());
      return;
    }
    const Buffer& buffer = problem_.buffers[i];
    if (buffer.outside || buffer.pinned) return Extend(i + 1, slab);
    for (Offset at(0); at + buffer.size <= Offset(0) + highest_; at = at + buffer.alignment) {
      if (Overlaps(buffer, at)) continue;
      offsets_[i] = at;
      Extend(i + 1, std::max(slab, at + buffer.size - Offset(0)));
      offsets_[i].reset();
    }
  }

  bool Overlaps(const Buffer& buffer, Offset at) const {
    for (size_t k = 0; k < offsets_.size(); ++k) {
      const Buffer& other = problem_.buffers[k];
      if (offsets_[k] && ShareBytes(buffer, at, other, *offsets_[k]) && ShareTick(problem_, buffer, other))
        return true;
    }
    return false;
  }

  const Problem& problem_;
  const Bytes highest_;
  std::vector<std::optional<Offset>> offsets_;
  int64_t best_ = int64_t{1} << 60;
};

}  // namespace reprise::planner
