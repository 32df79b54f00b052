#include "planner/ring_bound.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "planner/arcs.h"

namespace reprise::planner {
namespace {

constexpr int64_t kArcsPerStep = 4;  // looked at, as by the cliques
// What takes at least one part in so many of a round lives for long. Shorter ones count for little, wherever the points are.
constexpr int32_t kPartsOfRound = 20;
// How many may follow one another; more of them need hardly more than what is in use at once.
constexpr int64_t kMostInARound = 64;
// How many points are marked.
constexpr std::array<int32_t, 12> kPoints = {3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 128};

class RingBound {
 public:
  explicit RingBound(Search& search)
      : search_(search), slots_(search.instance().slots), arcs_(ArcsOf(search.instance())) {
    const Instance& instance = search.instance();
    const auto lives_long = [&](int32_t i) {
      return instance.is_free(i) && int64_t{instance.length(i)} * kPartsOfRound >= slots_;
    };
    long_lived_ = LoadOfSlots(instance, lives_long);
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      if (lives_long(i)) begins_.push_back(instance.begin[i]);
    }
    std::ranges::sort(begins_);
    int64_t total = 0;
    for (const Arc& arc : arcs_) total += arc.size;
    counts_ = total < std::numeric_limits<int64_t>::max() / (2 * kMostInARound);
  }

  // False once all sets of points have been tried.
  bool Run() {
    if (!counts_ || begins_.empty()) return false;
    for (; next_ < kPoints.size(); ++next_) {
      if (search_.Stop(static_cast<int64_t>(arcs_.size()) / kArcsPerStep)) return true;
      const int64_t bound = BoundOf(PeaksOf(kPoints[next_]));
      if (bound > std::max(search_.target(), search_.refuted() + 1)) search_.Refute(bound - 1);
    }
    return false;
  }

 private:
  using Marks = std::vector<int32_t>;  // how often a slot is marked

  // One in each stretch of the ring in which as many begin of what lives for long, where the most of it is in use.
  Marks PeaksOf(int64_t points) const {
    const auto begins = static_cast<int64_t>(begins_.size());
    Marks marks(slots_);
    for (int64_t i = 0; i < points; ++i) {
      const int32_t from = begins_[begins * i / points];
      const int32_t to = i + 1 < points ? begins_[begins * (i + 1) / points] : begins_[0] + slots_;
      int32_t peak = from;
      for (int32_t slot = from; slot < to; ++slot) {
        if (long_lived_[slot % slots_] > long_lived_[peak % slots_]) peak = slot;
      }
      ++marks[peak % slots_];
    }
    return marks;
  }

  int64_t BoundOf(const Marks& marks) const {
    std::vector<int32_t> before(static_cast<size_t>(slots_) + 1);  // marked in front of a slot
    for (int32_t slot = 0; slot < slots_; ++slot) before[slot + 1] = before[slot] + marks[slot];
    const int64_t all = before[slots_];
    std::vector<int64_t> sizes(all + 1);  // of the arcs that take so many points
    for (const Arc& arc : arcs_) {
      const int64_t taken = arc.end <= slots_ ? before[arc.end] - before[arc.begin]
                                              : all - before[arc.begin] + before[arc.end - slots_];
      sizes[taken] += arc.size;
    }
    int64_t bound = 0;
    for (int64_t k = 1; k <= std::min(all, kMostInARound); ++k) {
      int64_t parts = 0;  // of a k-th of a buffer each
      for (int64_t taken = all / (k + 1) + 1; taken <= all; ++taken)
        parts += sizes[taken] * (((k + 1) * taken - 1) / all);
      bound = std::max(bound, (parts + k - 1) / k);
    }
    return bound;
  }

  Search& search_;
  const int32_t slots_;
  std::vector<Arc> arcs_;
  std::vector<int64_t> long_lived_;  // in use of what lives for long, by slot
  std::vector<int32_t> begins_;      // of that, ascending
  bool counts_ = true;               // the sums are numbers
  size_t next_ = 0;                  // set of points
};

}  // namespace

Turn BeginRingBound(Search& search, std::string_view) {
  if (!search.instance().cyclic) return [] { return false; };
  return [bound = std::make_shared<RingBound>(search)] { return bound->Run(); };
}

}  // namespace reprise::planner
