#include "planner/together.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/holes.h"
#include "planner/orders.h"
#include "planner/part.h"

namespace reprise::planner {
namespace {

// Of the least height for the long-lived, in 256ths: by how much more they may take, at the second try and at the last one.
constexpr double kExcess = 4;
constexpr double kMostExcess = 16;
// What is between a height that is enough and one that is not: how often it is halved at most, and from how little on, in 256ths
// as well, it is not worth another try.
constexpr int kHalvings = 2;
constexpr double kLeastWorth = 0.25;
// Steps of laying one, beside the holes that are looked at; and of these how many for each on average: where more are on the
// way, being too small, first-fit has a better use for the time.
constexpr int64_t kStepsOfOne = 4;
constexpr int64_t kLooks = 32;

// A long-lived buffer, and when it is there, in slots, seen forwards or backwards in time.
struct Stay {
  int32_t buffer;
  int32_t begin;
  int32_t end;

  int32_t length() const { return end - begin; }
};

std::vector<Stay> Backwards(std::vector<Stay> stays, int32_t slots) {
  for (Stay& stay : stays) stay = {stay.buffer, slots - stay.end, slots - stay.begin};
  return stays;
}

// What lives for most of the time counts as there from the beginning, and comes first. The others come in runs, within which they
// begin and nobody ends, and those of a run by their ends.
std::vector<Stay> ByRun(std::vector<Stay> stays, int32_t slots) {
  const auto passes = [&](const Stay& stay) { return 2 * stay.length() <= slots; };
  std::vector<int32_t> ended(slots + 1, 0);  // by the beginning of each slot
  for (Stay& stay : stays) {
    if (!passes(stay)) stay.begin = 0;
    ++ended[stay.end];
  }
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::ranges::stable_sort(
      stays, {}, [&](const Stay& stay) { return std::tuple(ended[stay.begin], passes(stay), stay.end); });
  return stays;
}

// Addresses that are in use from the beginning until `end`, in slots.
struct Obstacle {
  int64_t bottom;
  int64_t top;
  int32_t end;
};

// What is pinned, as obstacles of which no two share an address: where several follow upon each other, until the last one ends.
// They need not be there from the beginning, but mostly are: they are live when the job is planned.
std::vector<Obstacle> ObstaclesOf(std::span<const Stay> pinned, const Instance& instance) {
  struct Edge {
    int64_t address;
    int32_t end;  // of a lifetime
    bool is_top;
  };
  std::vector<Edge> edges;
  for (const Stay& stay : pinned) {
    const int64_t bottom = instance.pinned[stay.buffer];
    edges.push_back({bottom, stay.end, false});
    edges.push_back({bottom + instance.size[stay.buffer], stay.end, true});
  }
  std::ranges::stable_sort(edges, {}, &Edge::address);
  std::vector<Obstacle> obstacles;
  std::multiset<int32_t> ends;  // of those at the address at hand
  int64_t from = 0;
  for (const Edge& edge : edges) {
    if (!ends.empty() && from < edge.address) obstacles.push_back({from, edge.address, *ends.rbegin()});
    from = edge.address;
    if (edge.is_top) {
      ends.erase(ends.find(edge.end));
    } else {
      ends.insert(edge.end);
    }
  }
  return obstacles;
}

// How the long-lived lie below a height.
struct Layout {
  int64_t height;
  std::vector<int32_t> order;  // from the bottom up
};

// Lays the long-lived, in the turn that they have forwards or backwards in time, below one height or another.
class Together {
 public:
  // Of `stays` whoever ends before one begins has its turn before it. `least` is a height that none is below.
  Together(std::vector<Stay> stays, std::vector<Obstacle> obstacles, int64_t least, Search& search)
      : stays_(std::move(stays)),
        leaving_(stays_),
        obstacles_(std::move(obstacles)),
        least_(least),
        search_(search),
        instance_(search.instance()),
        too_low_(least - 1),
        offsets_(instance_.buffers(), 0) {
    std::ranges::stable_sort(leaving_, {}, &Stay::end);
    std::ranges::stable_sort(obstacles_, {}, &Obstacle::end);
  }

  // Below the first height that is enough: of the target, which is as good as any, of what is a little above the least, and of
  // the most. nullopt: none is, or it would not be below the best placement.
  std::optional<Layout> Rise() {
    const int64_t highest = std::min(search_.best_slab() - 1, least_ + Part(kMostExcess));
    for (const int64_t wanted : {search_.target(), least_ + Part(kExcess), highest}) {
      const int64_t height = std::min(wanted, highest);
      if (height <= too_low_) continue;
      if (LayBelow(height)) return LayoutBelow(height);
      if (search_.Stop()) break;
    }
    return std::nullopt;
  }

  // Half the way down from `height`, to what is too low, and then half the way to or fro. nullopt: nothing there is enough.
  std::optional<Layout> Lower(int64_t height) {
    std::optional<Layout> lower;
    for (int i = 0; i < kHalvings && height - too_low_ > std::max<int64_t>(1, Part(kLeastWorth)); ++i) {
      const int64_t between = too_low_ + (height - too_low_) / 2;
      if (LayBelow(between)) {
        lower = LayoutBelow(between);
        height = between;
      }
      if (search_.Stop()) break;
    }
    return lower;
  }

 private:
  // So many 256ths of the least height.
  int64_t Part(double parts) const { return static_cast<int64_t>(parts / 256 * static_cast<double>(least_)); }

  Layout LayoutBelow(int64_t height) const {
    Layout layout{.height = height, .order = {}};
    for (const Stay& stay : stays_) layout.order.push_back(stay.buffer);
    std::ranges::stable_sort(layout.order, {}, [&](int32_t i) { return offsets_[i]; });
    return layout;
  }

  bool LayBelow(int64_t height) {
    const bool enough = TryBelow(height);
    if (!enough) too_low_ = height;
    return enough;
  }

  // Each beside whoever leaves as nearly with it as may be. False: there is no room for one, or too many holes are too small, or
  // the search is to stop.
  bool TryBelow(int64_t height) {
    if (search_.Stop(static_cast<int64_t>(obstacles_.size()))) return false;
    Holes holes(height);
    for (const Obstacle& obstacle : obstacles_) {
      if (obstacle.bottom < height) holes.Put(obstacle.bottom, std::min(obstacle.top, height), obstacle.end);
    }
    auto obstacle = obstacles_.begin();
    auto leaving = leaving_.begin();
    const int64_t most_looks = kLooks * static_cast<int64_t>(stays_.size());
    int64_t looks = 0;
    for (const Stay& stay : stays_) {
      const int64_t looked = holes.looks() - std::exchange(looks, holes.looks());
      if (search_.Stop(kStepsOfOne + looked) || looks > most_looks) return false;
      for (; leaving->end <= stay.begin; ++leaving) holes.Drop(offsets_[leaving->buffer]);
      for (; obstacle != obstacles_.end() && obstacle->end <= stay.begin; ++obstacle) {
        if (obstacle->bottom < height) holes.Drop(obstacle->bottom);
      }
      const int64_t bytes = instance_.size[stay.buffer];
      const int64_t offset = holes.Beside(stay.end, bytes, instance_.alignment[stay.buffer]);
      if (offset == Holes::kNowhere) return false;
      offsets_[stay.buffer] = offset;
      holes.Put(offset, offset + bytes, stay.end);
    }
    return true;
  }

  const std::vector<Stay> stays_;
  std::vector<Stay> leaving_;        // the same, by their ends
  std::vector<Obstacle> obstacles_;  // by their ends
  const int64_t least_;
  Search& search_;
  const Instance& instance_;
  int64_t too_low_;               // the highest that was not enough
  std::vector<int64_t> offsets_;  // of the latest try
};

// That the long-lived cannot be below, whatever lies around them: the load, and where buffers are pinned what these leave.
int64_t LeastHeight(std::span<const Stay> long_lived, std::span<const Stay> pinned,
                    const Instance& instance) {
  std::vector<int32_t> part;
  std::vector<int64_t> offsets;
  for (const std::span<const Stay> stays : {long_lived, pinned}) {
    for (const Stay& stay : stays) {
      part.push_back(stay.buffer);
      offsets.push_back(instance.pinned[stay.buffer]);
    }
  }
  return LowerBound(PartOf(instance, part, offsets).instance).count();
}

}  // namespace

int32_t LeastOfLong(const Instance& instance) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) lengths.push_back(instance.length(i));
  }
  std::ranges::sort(lengths);
  double sum = 0;
  for (const int32_t length : lengths) sum += std::log(length);
  double below = 0, furthest = 0;
  int32_t least = 0;
  for (size_t i = 1; i < lengths.size(); ++i) {
    below += std::log(lengths[i - 1]);
    if (lengths[i - 1] == lengths[i]) continue;
    // That the classes differ the least within is that their means are the furthest apart, for as many as they have.
    const auto shorter = static_cast<double>(i), longer = static_cast<double>(lengths.size() - i);
    const double apart = (sum - below) / longer - below / shorter;
    if (shorter * longer * apart * apart <= furthest) continue;
    furthest = shorter * longer * apart * apart;
    least = lengths[i];
  }
  return least;
}

void PlaceLongTogether(Search& search, std::string_view name) {
  const Instance& instance = search.instance();
  const int32_t least = LeastOfLong(instance);
  if (search.Stop(instance.buffers()) || least == 0 || instance.cyclic) return;
  const auto is_long_lived = [&](int32_t i) { return instance.length(i) >= least; };
  std::vector<int32_t> order = SortedBy(Order::kSize, instance);
  std::stable_partition(order.begin(), order.end(), is_long_lived);
  const auto stay_of = [&](int32_t i) { return Stay{i, instance.begin[i], instance.end[i]}; };
  std::vector<Stay> stays, pinned;
  for (const int32_t i : order) {
    if (is_long_lived(i)) stays.push_back(stay_of(i));
  }
  for (const int32_t i : PinnedBuffers(instance)) pinned.push_back(stay_of(i));
  const int64_t least_height = LeastHeight(stays, pinned, instance);
  const auto seen_backwards = [&](const std::vector<Stay>& those) {
    return Backwards(those, instance.slots);
  };
  Together backwards(ByRun(seen_backwards(stays), instance.slots),
                     ObstaclesOf(seen_backwards(pinned), instance), least_height, search);
  Together forwards(ByRun(stays, instance.slots), ObstaclesOf(pinned, instance), least_height, search);
  FirstFit first_fit(instance, search.memory());
  std::optional<int64_t> lowest;
  const auto lay = [&](const std::optional<Layout>& layout) {
    if (!layout) return;
    lowest = layout->height;
    std::ranges::copy(layout->order, order.begin());  // the others come behind, the largest first
    PlaceBelowBest(first_fit, order, search, name);
  };
  // There is an answer soon, and then a lower one.
  lay(backwards.Rise());
  if (!lowest) lay(forwards.Rise());
  if (lowest) lay(forwards.Lower(*lowest));
  if (lowest) lay(backwards.Lower(*lowest));
}

}  // namespace reprise::planner
