// Which buffers fill a stretch of time best, one behind the other?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {

// Weighted interval scheduling (Kleinberg and Tardos, *Algorithm Design*, 2005, section 6.1), many times over
// parts of the same free buffers: all starts and ends are sorted once, and a set of bits tells which of them
// are those of candidates. So a chain of n candidates is found in O(n) and a word for each 64 starts and ends
// of the stretch.
class Chain {
 public:
  explicit Chain(const Instance& instance);  // must outlive this

  // Of `candidates`, which are free and lie within [low, high), those of which no two share a slot and whose
  // values (by buffer, above 0) have the largest sum, in order of time. In a cycle `high` may be past its end
  // by up to `low`; what begins before `low` is meant to begin there.
  const std::vector<int32_t>& Best(int32_t low, int32_t high, std::span<const int32_t> candidates,
                                   std::span<const double> values);

 private:
  static constexpr int32_t kNone = -1;

  struct Moment {
    int32_t buffer;
    bool is_end;
  };
  // The best chain of what has ended.
  struct Sum {
    double value = 0;
    int32_t last = kNone;
  };

  void Mark(size_t moment) { marked_[moment / 64] |= uint64_t{1} << moment % 64; }
  void Sweep(size_t moment, size_t until, std::span<const double> values, Sum& best);

  const Instance& instance_;
  std::vector<Moment> moments_;  // of one round of time; in a slot ends come first
  std::vector<size_t> begin_;    // of which moment, by buffer
  std::vector<size_t> end_;      // likewise
  std::vector<size_t> first_;    // of which moment the first beginning is from a slot on, by slot
  std::vector<uint64_t> marked_;
  std::vector<Sum> before_;  // by buffer: when it began
  std::vector<int32_t> chain_;
};

}  // namespace reprise::planner
