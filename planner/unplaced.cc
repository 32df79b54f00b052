#include "planner/unplaced.h"

#include <algorithm>
#include <bit>

namespace reprise::planner {

Unplaced::Unplaced(const Instance& instance, std::span<const int32_t> buffers,
                   std::span<const int64_t> heights)
    : instance_(instance),
      heights_(heights),
      leaves_(static_cast<int32_t>(std::bit_ceil(std::max<size_t>(buffers.size(), 1)))),
      nodes_(2 * static_cast<size_t>(leaves_)),
      leaf_of_(instance.buffers()) {
  Divide(buffers);
}

void Unplaced::Reset(std::span<const int32_t> order) {
  by_rank_.assign(order.begin(), order.end());
  for (int32_t rank = 0; rank < static_cast<int32_t>(order.size()); ++rank) {
    const int32_t i = order[rank];
    nodes_[leaf_of_[i]] = {instance_.begin[i], instance_.begin[i], instance_.end[i], instance_.end[i], rank,
                           heights_[i],        heights_[i]};
  }
  for (int32_t node = leaves_ - 1; node > 0; --node) Update(node);
}

int32_t Unplaced::Find(int32_t low, int32_t high, int64_t room) {
  int32_t best = kNoRank;
  stack_.assign(1, 1);
  while (!stack_.empty()) {
    const int32_t node = stack_.back();
    stack_.pop_back();
    const Node& box = nodes_[node];
    if (box.rank >= best || box.max_begin < low || box.min_end > high || box.min_height > room) continue;
    if (box.min_begin >= low && box.max_end <= high && box.max_height <= room) {
      best = box.rank;
      continue;
    }
    if (node >= leaves_) continue;
    const bool left_first = nodes_[2 * node].rank < nodes_[2 * node + 1].rank;
    stack_.push_back(2 * node + (left_first ? 1 : 0));
    stack_.push_back(2 * node + (left_first ? 0 : 1));
  }
  return best;
}

bool Unplaced::FindAll(int32_t low, int32_t high, int64_t room, size_t most, std::vector<int32_t>& buffers) {
  stack_.assign(1, 1);
  while (!stack_.empty()) {
    const int32_t node = stack_.back();
    stack_.pop_back();
    const Node& box = nodes_[node];
    if (box.rank == kNoRank || box.max_begin < low || box.min_end > high || box.min_height > room) continue;
    if (node < leaves_) {
      stack_.push_back(2 * node);
      stack_.push_back(2 * node + 1);
    } else if (box.min_begin >= low && box.max_end <= high) {
      if (buffers.size() == most) return false;
      buffers.push_back(by_rank_[box.rank]);
    }
  }
  return true;
}

void Unplaced::Take(int32_t buffer) {
  int32_t node = leaf_of_[buffer];
  nodes_[node] = Node{};
  for (node /= 2; node > 0; node /= 2) Update(node);
}

void Unplaced::Update(int32_t node) {
  const Node& a = nodes_[2 * node];
  const Node& b = nodes_[2 * node + 1];
  nodes_[node] = {std::min(a.min_begin, b.min_begin),
                  std::max(a.max_begin, b.max_begin),
                  std::min(a.min_end, b.min_end),
                  std::max(a.max_end, b.max_end),
                  std::min(a.rank, b.rank),
                  std::min(a.min_height, b.min_height),
                  std::max(a.max_height, b.max_height)};
}

// Halves the buffers by begin, the halves by end, and so on; level by level, as the nodes lie in the heap.
void Unplaced::Divide(std::span<const int32_t> given) {
  std::vector<int32_t> buffers(given.begin(), given.end());
  const int64_t n = static_cast<int64_t>(buffers.size());
  bool by_begin = true;
  for (int32_t width = leaves_; width > 1; width /= 2, by_begin = !by_begin) {
    const std::vector<int32_t>& key = by_begin ? instance_.begin : instance_.end;
    for (int64_t first = 0; first < n; first += width) {
      const int64_t middle = first + width / 2;
      if (middle >= n) break;
      std::nth_element(buffers.begin() + first, buffers.begin() + middle,
                       buffers.begin() + std::min<int64_t>(first + width, n),
                       [&](int32_t a, int32_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
    }
  }
  for (int64_t i = 0; i < n; ++i) leaf_of_[buffers[i]] = leaves_ + static_cast<int32_t>(i);
}

}  // namespace reprise::planner
