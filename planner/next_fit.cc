#include "planner/next_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/part.h"

namespace reprise::planner {
namespace {

// By how much the height may be above the least for the long-lived, in 256ths of that, one after the other. What needs more is
// no queue.
constexpr int kExcesses[] = {0, 1, 2, 4, 8, 16};
// Of what is between the last two: how often it is halved, where the placement is the best so far.
constexpr int kHalvings = 3;

// Each on top of the one before, and where that would end above `height`, as low as there is room; too high where even
// that ends above it.
FirstFit::Outcome GoRound(std::span<const int32_t> order, int64_t height, FirstFit& first_fit, Search& search,
                          std::vector<int64_t>& offsets) {
  const Instance& instance = search.instance();
  search.Stop(first_fit.Clear());
  int64_t next = 0;
  for (const int32_t i : order) {
    if (search.Stop(first_fit.Nodes())) return FirstFit::Outcome::kStopped;
    offsets[i] = first_fit.LowestFree(i, next);
    if (offsets[i] + instance.size[i] > height) offsets[i] = first_fit.LowestFree(i);
    next = offsets[i] + instance.size[i];
    if (next > height) return FirstFit::Outcome::kTooHigh;
    first_fit.Insert(i, offsets[i]);
  }
  return FirstFit::Outcome::kComplete;
}

// Of those that begin at once the longest lies lowest: what lives throughout is then in nobody's way.
void SortByStart(std::span<int32_t> long_lived, const Instance& instance) {
  std::ranges::stable_sort(long_lived, [&](int32_t a, int32_t b) {
    return instance.begin[a] != instance.begin[b] ? instance.begin[a] < instance.begin[b]
                                                  : instance.end[a] > instance.end[b];
  });
}

// What lives for most of the time lies lowest. The others come in runs, within which they begin and nobody ends, and those of a
// run by their ends: where a part of what a batch leaves stays for longer, the rest leaves one hole so, and not many.
void SortByRun(std::span<int32_t> long_lived, const Instance& instance) {
  // By the beginning of each slot; a lifetime that wraps ends in the round after this one.
  std::vector<int32_t> ended(2 * instance.slots + 1, 0);
  for (const int32_t i : long_lived) ++ended[instance.end[i]];
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::ranges::stable_sort(long_lived, {}, [&](int32_t i) {
    const bool passes = 2 * instance.length(i) <= instance.slots;
    return std::tuple(passes, ended[instance.begin[i]], instance.end[i]);
  });
}

// That the long-lived cannot be below, whatever lies around them: the load, and where buffers are pinned what these leave.
int64_t LeastHeight(std::span<const int32_t> long_lived, const Instance& instance) {
  std::vector<int32_t> part(long_lived.begin(), long_lived.end());
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) part.push_back(i);
  }
  std::vector<int64_t> pinned;
  pinned.reserve(part.size());
  for (const int32_t i : part) pinned.push_back(instance.pinned[i]);
  return LowerBound(PartOf(instance, part, pinned).instance).count();
}

// Heights below which they go round: the lowest that was tried and is enough, and one that is not; the same where no
// less is to be had.
struct Heights {
  int64_t too_low;
  int64_t enough;
};

// Up from `least`, by little and then by more. nullopt: none is enough, or below the best placement.
std::optional<Heights> RiseUntilEnough(std::span<const int32_t> order, int64_t least, FirstFit& first_fit,
                                       Search& search, std::vector<int64_t>& offsets) {
  int64_t too_low = least;
  for (const int excess : kExcesses) {
    const int64_t height = least + static_cast<int64_t>(excess / 256.0 * static_cast<double>(least));
    if (height >= search.best_slab()) return std::nullopt;
    const FirstFit::Outcome outcome = GoRound(order, height, first_fit, search, offsets);
    if (outcome == FirstFit::Outcome::kComplete) return Heights{too_low, height};
    if (outcome == FirstFit::Outcome::kStopped) return std::nullopt;
    too_low = height;
  }
  return std::nullopt;
}

// Whether less than the last step was enough, and `offsets` are the lower ones.
bool TakeBack(std::span<const int32_t> order, Heights heights, FirstFit& first_fit, Search& search,
              std::vector<int64_t>& offsets) {
  bool lower = false;
  std::vector<int64_t> tried(offsets.size(), 0);
  for (int halving = 0; halving < kHalvings && heights.too_low + 1 < heights.enough; ++halving) {
    const int64_t between = heights.too_low + (heights.enough - heights.too_low) / 2;
    const FirstFit::Outcome outcome = GoRound(order, between, first_fit, search, tried);
    if (outcome == FirstFit::Outcome::kStopped) return lower;
    if (outcome == FirstFit::Outcome::kTooHigh) {
      heights.too_low = between;
      continue;
    }
    heights.enough = between;
    offsets.swap(tried);
    lower = true;
  }
  return lower;
}

// The long-lived, which lead `order`, from the bottom up as they lie, and the others around them. Whether that is the best
// so far.
bool LayAll(std::vector<int32_t> order, size_t long_lived, std::vector<int64_t> offsets, FirstFit& first_fit,
            Search& search, std::string_view name) {
  std::ranges::stable_sort(std::span(order.data(), long_lived), {}, [&](int32_t i) { return offsets[i]; });
  const int64_t best = search.best_slab();
  const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
  const FirstFit::Outcome outcome = first_fit.Place(order, limit, search, offsets);
  if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, name, order);
  return search.best_slab() < best;
}

// In the turn that `order` has for the long-lived, which lead it.
void LayInTurn(const std::vector<int32_t>& order, size_t long_lived, int64_t least_height,
               FirstFit& first_fit, Search& search, std::string_view name) {
  const std::span first(order.data(), long_lived);
  std::vector<int64_t> offsets(search.instance().buffers(), 0);
  const auto heights = RiseUntilEnough(first, least_height, first_fit, search, offsets);
  if (!heights || !LayAll(order, long_lived, offsets, first_fit, search, name)) return;
  if (TakeBack(first, *heights, first_fit, search, offsets))
    LayAll(order, long_lived, std::move(offsets), first_fit, search, name);
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
  if (search.Stop(instance.buffers()) || least == 0) return;
  const auto is_long_lived = [&](int32_t i) { return instance.is_free(i) && instance.length(i) >= least; };
  std::vector<int32_t> order = SortedBy(Order::kSize, instance);
  const auto others = std::stable_partition(order.begin(), order.end(), is_long_lived);
  const std::span long_lived(order.begin(), others);
  const int64_t least_height = LeastHeight(long_lived, instance);
  FirstFit first_fit(instance, search.memory());
  // Where both come to the bound the first is kept, and jobs that were served by it had fewer conflicts.
  for (const auto sort : {SortByStart, SortByRun}) {
    sort(long_lived, instance);
    LayInTurn(order, long_lived.size(), least_height, first_fit, search, name);
  }
}

}  // namespace reprise::planner
