#include "planner/bound.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "planner/first_fit.h"
#include "planner/part.h"
#include "planner/radix_sort.h"

namespace reprise::planner {
namespace {

constexpr int32_t kNoObstacle = -1;

// Every offset of a placement is a multiple of this.
int64_t CommonGrain(const Instance& instance) {
  int64_t grain = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) grain = std::gcd(grain, instance.alignment[i]);
    if (instance.is_pinned(i)) grain = std::gcd(grain, instance.pinned[i]);
  }
  return std::max<int64_t>(grain, 1);
}

// The pinned buffers in use in the current slot: how high must one go for a given amount of free room?
// A segment tree over the obstacles by offset; each node knows the room that its live ones take, and the
// highest. Who is aligned to `grain` takes whole rows of so many bytes, from the first byte of each: a row whose first
// byte an obstacle has is the obstacle's, any other one is free.
class ObstacleTree {
 public:
  ObstacleTree(const Instance& instance, int64_t grain) {
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      if (instance.is_pinned(i)) sorted_.push_back(i);
    }
    std::sort(sorted_.begin(), sorted_.end(),
              [&](int32_t a, int32_t b) { return instance.pinned[a] < instance.pinned[b]; });
    leaves_ = std::bit_ceil(std::max<size_t>(sorted_.size(), 1));
    position_.resize(instance.buffers());
    nodes_.resize(2 * leaves_);
    for (size_t k = 0; k < sorted_.size(); ++k) {
      position_[sorted_[k]] = k;
      const int64_t offset = instance.pinned[sorted_[k]];
      offset_.push_back(RoundUpTo(offset, grain));
      size_.push_back(RoundUpTo(offset + instance.size[sorted_[k]], grain) - offset_.back());
    }
  }

  void Set(int32_t buffer, bool live) {
    const size_t k = position_[buffer];
    size_t node = leaves_ + k;
    nodes_[node] = live ? Node{size_[k], static_cast<int32_t>(k)} : Node{};
    for (node /= 2; node > 0; node /= 2) {
      const Node& left = nodes_[2 * node];
      const Node& right = nodes_[2 * node + 1];
      nodes_[node] = {left.taken + right.taken, right.highest != kNoObstacle ? right.highest : left.highest};
    }
  }

  // The least height with `room` free bytes below it. An obstacle is in the way if the room below it is less;
  // that holds for the lowest ones up to some point, found by descending.
  int64_t HeightFor(int64_t room) const {
    int64_t below = 0;  // taken by obstacles in the way
    size_t node = 1;
    if (InTheWay(nodes_[node], below, room)) return room + nodes_[node].taken;
    while (node < leaves_) {
      node = 2 * node;
      if (!InTheWay(nodes_[node], below, room)) continue;
      below += nodes_[node].taken;
      ++node;
    }
    return room + below;
  }

 private:
  struct Node {
    int64_t taken = 0;
    int32_t highest = kNoObstacle;  // the highest live obstacle, as an index into offset_ and size_
  };

  // Is even the highest obstacle of the node in the way, `below` being taken below the node?
  bool InTheWay(const Node& node, int64_t below, int64_t room) const {
    if (node.highest == kNoObstacle) return true;
    return offset_[node.highest] - (below + node.taken - size_[node.highest]) < room;
  }

  std::vector<int32_t> sorted_;
  std::vector<size_t> position_;
  std::vector<int64_t> offset_, size_;
  size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

// Of the buffers that are aligned to one grain: what those in use at a time need.
class AlignedRoom {
 public:
  AlignedRoom(const Instance& instance, int64_t grain)
      : instance_(instance), grain_(grain), obstacles_(instance, grain), in_use_(instance.buffers()) {}

  void Start(int32_t buffer) {
    if (!instance_.is_free(buffer)) return obstacles_.Set(buffer, true);
    if (!IsAligned(buffer)) return;
    in_use_[buffer] = true;
    const int64_t rounded = RoundUpTo(instance_.size[buffer], grain_);
    room_ += rounded;
    if (grain_ > 1) slack_.emplace(rounded - instance_.size[buffer], buffer);
  }

  void Stop(int32_t buffer) {
    if (!instance_.is_free(buffer)) return obstacles_.Set(buffer, false);
    if (!IsAligned(buffer)) return;
    in_use_[buffer] = false;
    room_ -= RoundUpTo(instance_.size[buffer], grain_);
  }

  // The least height for those in use.
  int64_t Height() { return room_ == 0 ? 0 : obstacles_.HeightFor(room_) - LargestSlack(); }

 private:
  bool IsAligned(int32_t buffer) const { return grain_ == 1 || instance_.alignment[buffer] % grain_ == 0; }

  // The topmost buffer wastes nothing behind it; which one that is, is unknown.
  int64_t LargestSlack() {
    while (!slack_.empty() && !in_use_[slack_.top().second]) slack_.pop();
    return slack_.empty() ? 0 : slack_.top().first;
  }

  const Instance& instance_;
  const int64_t grain_;
  ObstacleTree obstacles_;
  std::vector<bool> in_use_;                                // of the free buffers
  int64_t room_ = 0;                                        // what those in use need
  std::priority_queue<std::pair<int64_t, int32_t>> slack_;  // of free buffers in use, and of some past ones
};

// Sweeps the slots of an instance; says the least height in any.
class Sweep {
 public:
  explicit Sweep(const Instance& instance) : instance_(instance) {
    for (auto* events : {&starts_, &ends_}) events->reserve(instance.all_ranges.size());
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      for (const Range& range : instance.ranges(i)) {
        starts_.emplace_back(range.begin, i);
        ends_.emplace_back(range.end, i);
      }
    }
    for (auto* events : {&starts_, &ends_}) {
      RadixSort(*events, [](const auto& event) { return static_cast<uint64_t>(event.first); });
    }
  }

  int64_t Run(int64_t grain) const {
    AlignedRoom aligned(instance_, grain);
    int64_t bound = 0;
    size_t start = 0, end = 0;
    for (int32_t slot = 0; slot < instance_.slots; ++slot) {
      for (; end < ends_.size() && ends_[end].first <= slot; ++end) aligned.Stop(ends_[end].second);
      for (; start < starts_.size() && starts_[start].first <= slot; ++start)
        aligned.Start(starts_[start].second);
      bound = std::max(bound, aligned.Height());
    }
    return bound;
  }

 private:
  const Instance& instance_;
  // (slot, buffer): the first slot in which the buffer is in use, the first in which it is not any more.
  std::vector<std::pair<int32_t, int32_t>> starts_, ends_;
};

Grains GrainsOf(const Instance& instance) {
  Grains grains;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) grains.Add(instance.alignment[i]);
  }
  return grains;
}

// How many buffers are looked at alone: the largest.
constexpr size_t kMostAlone = 1000;

// Those which the obstacles may keep from lying below `bound`: above all obstacles that begin there they would reach
// beyond it.
std::vector<int32_t> PerhapsAbove(const Instance& instance, int64_t bound) {
  int64_t top = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i) && instance.pinned[i] < bound)
      top = std::max(top, instance.pinned[i] + instance.size[i]);
  }
  std::vector<int32_t> buffers;
  if (top == 0) return buffers;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i) && RoundUpTo(top, instance.alignment[i]) + instance.size[i] > bound)
      buffers.push_back(i);
  }
  if (buffers.size() <= kMostAlone) return buffers;
  std::nth_element(buffers.begin(), buffers.begin() + kMostAlone, buffers.end(), [&](int32_t a, int32_t b) {
    return instance.size[a] != instance.size[b] ? instance.size[a] > instance.size[b] : a < b;
  });
  buffers.resize(kMostAlone);
  return buffers;
}

// How high a buffer reaches at least that is alone with the obstacles, if it is above `bound`.
int64_t HeightAlone(const Instance& instance, int64_t bound) {
  std::vector<int32_t> buffers = PerhapsAbove(instance, bound);
  if (buffers.empty()) return bound;
  const auto alone = static_cast<int32_t>(buffers.size());
  std::vector<int64_t> pinned(buffers.size(), Instance::kFree);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!instance.is_pinned(i)) continue;
    buffers.push_back(i);
    pinned.push_back(instance.pinned[i]);
  }
  const Part part = PartOf(instance, buffers, pinned);
  FirstFit first_fit(part.instance);
  first_fit.Clear();
  for (int32_t i = 0; i < alone; ++i) {
    const int64_t height = first_fit.LowestFree(i) + part.instance.size[i];
    if (first_fit.resorts() > 0) break;  // not the lowest any more
    bound = std::max(bound, height);
  }
  return bound;
}

}  // namespace

Bytes MaxLive(const Problem& problem) {
  const std::vector<int64_t> load = LoadOfSlots(Compress(problem));
  return Bytes(load.empty() ? 0 : *std::max_element(load.begin(), load.end()));
}

bool HasOneLane(const Problem& problem) {
  const auto first = std::ranges::find_if(problem.buffers, HasLane);
  return std::all_of(first, problem.buffers.end(),
                     [&](const Buffer& buffer) { return !HasLane(buffer) || buffer.lane == first->lane; });
}

std::vector<Lane> LanesOf(const Problem& problem) {
  std::map<int32_t, Lane> by_number;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (HasLane(problem.buffers[i])) by_number[problem.buffers[i].lane].buffers.push_back(i);
  }
  std::vector<Lane> lanes;
  for (auto& [number, lane] : by_number) {
    Problem alone{.period = problem.period};
    for (const size_t i : lane.buffers) alone.buffers.push_back(problem.buffers[i]);
    lane.max_live = MaxLive(alone);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

namespace {

// What lanes that may not share bytes have in use at most; 0 where they may.
Bytes Apart(const Problem& problem) {
  Bytes apart;
  if (problem.reuse == Reuse::kForbidden) {
    for (const Lane& lane : LanesOf(problem)) apart += lane.max_live;
  }
  return apart;
}

}  // namespace

Bytes HeightOfLoad(const Problem& problem) {
  const Instance instance = Compress(problem);
  return std::max(Apart(problem), Bytes(Sweep(instance).Run(CommonGrain(instance))));
}

Bytes LowerBound(const Problem& problem) { return std::max(Apart(problem), LowerBound(Compress(problem))); }

Bytes LowerBound(const Instance& instance) {
  const Sweep sweep(instance);
  const int64_t common = CommonGrain(instance);
  int64_t bound = sweep.Run(common);
  for (const int64_t grain : GrainsOf(instance).Ascending()) {
    if (grain != common) bound = std::max(bound, sweep.Run(grain));
  }
  return Bytes(HeightAlone(instance, bound));
}

void Grains::Add(int64_t alignment) {
  const auto power = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(alignment)));
  int64_t& common = common_[power % common_.size()];  // it is below that anyway; GCC 13 warns otherwise
  common = std::gcd(common, alignment);
}

std::vector<int64_t> Grains::Ascending() const {
  std::vector<int64_t> grains;
  int64_t grain = 0;
  for (auto common = common_.rbegin(); common != common_.rend(); ++common) {
    if (*common == 0) continue;
    grain = std::gcd(grain, *common);
    grains.push_back(grain);
  }
  std::ranges::reverse(grains);
  return grains;
}

RunningBound::RunningBound(const Grains& grains) {
  for (const int64_t grain : grains.Ascending()) aligned_.push_back({grain});
}

// More buffers in use never lower it, so that it is asked for after each start, not once a slot.
void RunningBound::Start(Bytes size, Bytes alignment) {
  for (Aligned& aligned : aligned_) {
    if (alignment.count() % aligned.grain != 0) break;
    const int64_t rounded = RoundUpTo(size.count(), aligned.grain);
    aligned.room += rounded;
    if (aligned.grain > 1) ++aligned.slack[rounded - size.count()];
    if (aligned.room <= bound_) continue;
    bound_ = std::max(bound_, aligned.room - (aligned.slack.empty() ? 0 : aligned.slack.rbegin()->first));
  }
}

void RunningBound::Stop(Bytes size, Bytes alignment) {
  for (Aligned& aligned : aligned_) {
    if (alignment.count() % aligned.grain != 0) break;
    const int64_t rounded = RoundUpTo(size.count(), aligned.grain);
    aligned.room -= rounded;
    if (aligned.grain == 1) continue;
    const auto it = aligned.slack.find(rounded - size.count());
    if (--it->second == 0) aligned.slack.erase(it);
  }
}

double Gap(Bytes slab, Bytes bound) {
  if (bound == Bytes(0)) return 0;
  return static_cast<double>(slab.count()) / static_cast<double>(bound.count()) - 1;
}

}  // namespace reprise::planner
