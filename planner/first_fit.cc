#include "planner/first_fit.h"

#include <algorithm>
#include <utility>

namespace reprise::planner {
namespace {

constexpr size_t kPollMask = 63;  // buffers between two polls, less one

constexpr int32_t kBranches =
    8;  // of a node; fewer make more levels to insert into, more make more canonical nodes

// The first node of each level, from the slots up to the root, and one past it.
std::vector<int32_t> LevelsOver(int32_t slots) {
  std::vector<int32_t> begin = {0};
  for (int32_t width = std::max(slots, 1);; width = (width + kBranches - 1) / kBranches) {
    begin.push_back(begin.back() + width);
    if (width == 1) return begin;
  }
}

}  // namespace

FirstFit::FirstFit(const Instance& instance, IntervalLists& memory)
    : instance_(instance),
      level_begin_(LevelsOver(instance.slots)),
      sets_(memory),
      seen_(level_begin_.back(), 0) {
  sets_.Reset(2 * level_begin_.back());
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) pinned_.push_back(i);
  }
}

FirstFit::Outcome FirstFit::Place(std::span<const int32_t> order, int64_t limit, Search& search,
                                  std::vector<int64_t>& offsets) {
  offsets = instance_.pinned;
  Clear();
  int64_t steps = 0;  // looked at since the last poll
  for (size_t i = 0; i < order.size(); ++i) {
    if ((i & kPollMask) == kPollMask && search.Stop(std::exchange(steps, 0))) return Outcome::kStopped;
    const int32_t buffer = order[i];
    offsets[buffer] = LowestFree(buffer);
    steps += static_cast<int64_t>(canonical_.size() + above_.size());
    if (offsets[buffer] + instance_.size[buffer] > limit) {
      too_high_ = buffer;
      search.Stop(steps);
      return Outcome::kTooHigh;
    }
    Insert(buffer, offsets[buffer]);
  }
  search.Stop(steps);
  return Outcome::kComplete;
}

void FirstFit::FindNodes(int32_t buffer) {
  nodes_.clear();
  canonical_.clear();
  above_.clear();
  for (const Range& range : instance_.ranges(buffer)) AddRange(range);
  ++round_;
  const int32_t levels = static_cast<int32_t>(level_begin_.size()) - 1;
  for (const Node& node : nodes_) {
    canonical_.push_back(level_begin_[node.level] + node.index);
    int32_t index = node.index / kBranches;
    for (int32_t level = node.level + 1; level < levels; ++level, index /= kBranches) {
      const int32_t above = level_begin_[level] + index;
      if (seen_[above] == round_) break;
      seen_[above] = round_;
      above_.push_back(above);
    }
  }
}

void FirstFit::AddRange(Range range) {
  auto [low, high] = range;
  for (int32_t level = 0; low < high; ++level) {
    // A last node that has fewer branches is covered if those are.
    const int32_t width = level_begin_[level + 1] - level_begin_[level];
    if (high == width && width > 1) high = (width + kBranches - 1) / kBranches * kBranches;
    for (; low < high && low % kBranches != 0; ++low) {
      if (low < width) nodes_.push_back({level, low});
    }
    while (low < high && high % kBranches != 0) nodes_.push_back({level, --high});
    low /= kBranches;
    high /= kBranches;
  }
}

void FirstFit::Clear() {
  sets_.Clear();
  for (int32_t buffer : pinned_) {
    FindNodes(buffer);
    Insert(buffer, instance_.pinned[buffer]);
  }
}

int64_t FirstFit::LowestFree(int32_t buffer, int64_t from) {
  FindNodes(buffer);
  blockers_.clear();
  // The largest nodes first: they leave the fewest holes.
  for (auto node = canonical_.rbegin(); node != canonical_.rend(); ++node) {
    if (!sets_.Empty(Any(*node))) blockers_.push_back(sets_.Begin(Any(*node)));
  }
  for (int32_t node : above_) {
    if (!sets_.Empty(Cover(node))) blockers_.push_back(sets_.Begin(Cover(node)));
  }
  const int64_t alignment = instance_.alignment[buffer];
  int64_t address = (from + alignment - 1) / alignment * alignment;
  // A set that asks for a leap comes sooner from then on, and those before it are asked again: who objected
  // often is the likeliest to object next.
  for (size_t i = 0; i < blockers_.size();) {
    const int64_t leapt = IntervalLists::Leap(blockers_[i], address, instance_.size[buffer], alignment);
    if (leapt == address || i == 0) {
      ++i;
    } else {
      std::swap(blockers_[i], blockers_[i / 2]);
      i = 0;
    }
    address = leapt;
  }
  return address;
}

void FirstFit::Insert(int32_t buffer, int64_t offset) {
  const int64_t end = offset + instance_.size[buffer];
  for (int32_t node : canonical_) {
    // Nobody asks what covers a slot: there are no nodes below it.
    if (node >= level_begin_[1]) sets_.Insert(Cover(node), offset, end);
    sets_.Insert(Any(node), offset, end);
  }
  for (int32_t node : above_) sets_.Insert(Any(node), offset, end);
}

}  // namespace reprise::planner
