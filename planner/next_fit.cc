#include "planner/next_fit.h"

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
#include "planner/free_addresses.h"
#include "planner/orders.h"
#include "planner/part.h"

namespace reprise::planner {
namespace {

// By how much the height may be above the least for the long-lived, in 256ths of that, one after the other. What needs more is
// no queue.
constexpr int kExcesses[] = {0, 1, 4, 16};
// Free ranges looked at for each of the long-lived, on average: where there are more on the way, it is no queue.
constexpr int64_t kLooks = 64;
// What is between a height that is enough and one that is not: how often it is halved at most, and from how little on, in 256ths
// as well, it is not worth a round.
constexpr int kHalvings = 4;
constexpr double kLeastWorth = 0.25;

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

// Of those that begin at once the longest lies lowest: what lives throughout is then in nobody's way.
std::vector<Stay> ByStart(std::vector<Stay> stays) {
  std::ranges::stable_sort(stays, [](const Stay& a, const Stay& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return stays;
}

// What lives for most of the time counts as there from the beginning and lies lowest. The others come in runs, within which they
// begin and nobody ends, and those of a run by their ends: where a part of what a batch leaves stays for longer, the rest
// leaves one hole so, and not many.
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

// A way to go round below a height: who comes on top of whom.
struct Course {
  int64_t height;
  std::vector<int32_t> order;    // of the long-lived
  std::vector<int64_t> offsets;  // by buffer, of these
};

// Goes round, in the turn of `stays`, below one height or another.
class Rounds {
 public:
  // Whoever ends before one begins has its turn before it. `least` is a height that none is below.
  Rounds(std::span<const Stay> stays, std::vector<Obstacle> obstacles, int64_t least, Search& search)
      : stays_(stays),
        leaving_(stays.begin(), stays.end()),
        obstacles_(std::move(obstacles)),
        least_(least),
        search_(search),
        instance_(search.instance()),
        tried_(instance_.buffers(), 0) {
    std::ranges::stable_sort(leaving_, {}, &Stay::end);
    std::ranges::stable_sort(obstacles_, {}, &Obstacle::end);
  }

  // The lowest course that is found below `below`; where there is none yet to be below of, up from the least, by little and
  // then by more.
  std::optional<Course> Lowest(int64_t below) {
    Course course{.height = Search::kNothing, .order = {}, .offsets = tried_};
    int64_t too_low = least_ - 1;
    const auto try_height = [&](int64_t height) {
      if (!GoRound(height)) {
        too_low = height;
        return;
      }
      course.height = below = height;
      course.offsets.swap(tried_);
    };
    const int64_t highest = search_.best_slab() - 1;
    for (size_t i = 0; below == Search::kNothing; ++i) {
      if (i == std::size(kExcesses) || too_low >= highest || search_.Stop()) return std::nullopt;
      try_height(std::min(least_ + Part(kExcesses[i]), highest));
    }
    const int64_t least_worth = std::max<int64_t>(1, Part(kLeastWorth));
    for (int i = 0; i < kHalvings && below - too_low > least_worth && !search_.Stop(); ++i)
      try_height(too_low + (below - too_low) / 2);
    if (course.height == Search::kNothing) return std::nullopt;
    for (const Stay& stay : stays_) course.order.push_back(stay.buffer);
    std::ranges::stable_sort(course.order, {}, [&](int32_t i) { return course.offsets[i]; });
    return course;
  }

 private:
  // So many 256ths of the least height.
  int64_t Part(double parts) const { return static_cast<int64_t>(parts / 256 * static_cast<double>(least_)); }

  // Each on top of the one before, and where that would end above `height`, as low as there is room. False: there is not, or
  // the search is to stop.
  bool GoRound(int64_t height) {
    if (search_.Stop(static_cast<int64_t>(obstacles_.size()))) return false;
    FreeAddresses free(height);
    for (const Obstacle& obstacle : obstacles_) free.Take(obstacle.bottom, obstacle.top);
    auto obstacle = obstacles_.begin();
    auto leaving = leaving_.begin();
    const int64_t most_looks = kLooks * static_cast<int64_t>(stays_.size());
    int64_t next = 0, looks = 0;
    for (const Stay& stay : stays_) {
      const int64_t looked = free.looks() - std::exchange(looks, free.looks());
      if (search_.Stop(1 + looked) || looks > most_looks) return false;
      for (; leaving->end <= stay.begin; ++leaving) {
        const int64_t offset = tried_[leaving->buffer];
        free.Give(offset, offset + instance_.size[leaving->buffer]);
      }
      for (; obstacle != obstacles_.end() && obstacle->end <= stay.begin; ++obstacle) {
        if (obstacle->bottom < height) free.Give(obstacle->bottom, std::min(obstacle->top, height));
      }
      const int64_t size = instance_.size[stay.buffer], alignment = instance_.alignment[stay.buffer];
      int64_t offset = free.Lowest(next, size, alignment);
      if (offset == FreeAddresses::kNowhere) offset = free.Lowest(0, size, alignment);
      if (offset == FreeAddresses::kNowhere) return false;
      tried_[stay.buffer] = offset;
      next = offset + size;
      free.Take(offset, next);
    }
    return true;
  }

  const std::span<const Stay> stays_;
  std::vector<Stay> leaving_;        // the same, by their ends
  std::vector<Obstacle> obstacles_;  // by their ends
  const int64_t least_;
  Search& search_;
  const Instance& instance_;
  std::vector<int64_t> tried_;  // offsets of the round at hand
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

// The long-lived from the bottom up as they lie in `course`, and around them the others in the order that they have in `order`,
// which the long-lived lead.
void LayAll(const Course& course, std::vector<int32_t> order, FirstFit& first_fit, Search& search,
            std::string_view name) {
  std::ranges::copy(course.order, order.begin());
  const int64_t best = search.best_slab();
  const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
  std::vector<int64_t> offsets;
  const FirstFit::Outcome outcome = first_fit.Place(order, limit, search, offsets);
  if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, name, order);
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

void PlaceLongByNextFit(Search& search, std::string_view name) {
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
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) pinned.push_back(stay_of(i));
  }
  const int64_t least_height = LeastHeight(stays, pinned, instance);
  const std::vector<Stay> backwards = Backwards(stays, instance.slots);
  const std::vector<Obstacle> obstacles = ObstaclesOf(pinned, instance);
  const std::vector<Obstacle> obstacles_backwards = ObstaclesOf(Backwards(pinned, instance.slots), instance);
  FirstFit first_fit(instance, search.memory());
  std::optional<Course> lowest;
  bool laid = false;
  const auto go = [&](const std::vector<Stay>& turns, const std::vector<Obstacle>& in_the_way) {
    const int64_t below = lowest ? lowest->height : Search::kNothing;
    std::optional<Course> course = Rounds(turns, in_the_way, least_height, search).Lowest(below);
    if (!course) return;
    lowest = std::move(course);
    // What needs no more than the bound is laid at once. Where that is enough the first is kept, and jobs that were served by
    // it had fewer conflicts.
    laid = lowest->height <= search.target();
    if (laid) LayAll(*lowest, order, first_fit, search, name);
  };
  go(ByStart(stays), obstacles);
  go(ByRun(stays, instance.slots), obstacles);
  go(ByRun(backwards, instance.slots), obstacles_backwards);
  if (lowest && !laid && lowest->height < search.best_slab()) LayAll(*lowest, order, first_fit, search, name);
}

}  // namespace reprise::planner
