#include "planner/crossings.h"

#include <algorithm>
#include <map>

namespace reprise::planner {
namespace {

// Who had each part of the slab last.
class Owners {
 public:
  // Calls visit(owner) for each part of [begin, end), which is `use`'s from now on.
  template <typename Visit>
  void Take(int64_t begin, int64_t end, size_t use, Visit visit) {
    auto part = parts_.upper_bound(begin);
    if (part != parts_.begin()) --part;
    while (part != parts_.end() && part->first < end) {
      const auto [from, was] = *part;
      if (was.end <= begin) {
        ++part;
        continue;
      }
      visit(was.use);
      part = parts_.erase(part);
      if (from < begin) parts_[from] = {begin, was.use};
      if (was.end > end) part = parts_.insert({end, was}).first;
    }
    parts_[begin] = {end, use};
  }

 private:
  struct Part {
    int64_t end = 0;
    size_t use = 0;
  };
  std::map<int64_t, Part> parts_;  // by begin; they do not overlap
};

struct TimedUse {
  int64_t tick;
  Use use;
};

}  // namespace

std::vector<bool> FindCrossings(std::span<const Use> uses, bool cyclic) {
  std::vector<bool> crossings(uses.size());
  Owners owners;
  for (int round = 0; round < (cyclic ? 2 : 1); ++round) {  // the second sees what the first has left
    for (size_t i = 0; i < uses.size(); ++i) {
      owners.Take(uses[i].begin, uses[i].end, i, [&](size_t last) {
        if (uses[last].left_on != uses[i].taken_on) crossings[last] = true;
      });
    }
  }
  return crossings;
}

int64_t CountCrossings(const Problem& problem, const Placement& placement) {
  std::vector<TimedUse> timed;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.pinned || buffer.outside) continue;
    const int64_t begin = placement.offsets[i].count();
    const uint64_t lane = static_cast<uint64_t>(buffer.lane);
    const Use use{begin, begin + buffer.size.count(), lane, lane};
    const auto in_cycle = [&](Tick tick) {
      return problem.period ? tick.count() % *problem.period : tick.count();
    };
    timed.push_back({buffer.lower.count(), use});
    for (const LifetimeGap& gap : buffer.gaps) timed.push_back({in_cycle(gap.upper), use});
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const TimedUse& a, const TimedUse& b) { return a.tick < b.tick; });
  std::vector<Use> uses;
  uses.reserve(timed.size());
  for (const TimedUse& t : timed) uses.push_back(t.use);
  const std::vector<bool> crossings = FindCrossings(uses, problem.period.has_value());
  return std::count(crossings.begin(), crossings.end(), true);
}

}  // namespace reprise::planner
