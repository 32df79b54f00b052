#include "planner/slot_trees.h"

#include <algorithm>
#include <bit>

namespace reprise::planner {
namespace {

int32_t LeavesFor(int32_t slots) {
  return static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(slots, 1))));
}

// Calls visit(node) for the nodes that the range [begin, end) of leaves is made of.
template <typename Visit>
void ForNodes(int32_t leaves, Range range, Visit visit) {
  int32_t low = range.begin + leaves;
  int32_t high = range.end + leaves;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) visit(low++);
    if (high % 2 == 1) visit(--high);
  }
}

}  // namespace

HeightTree::HeightTree(int32_t slots, bool ring)
    : slots_(slots), ring_(ring), leaves_(LeavesFor(slots)), nodes_(2 * static_cast<size_t>(leaves_)) {
  Clear();
}

void HeightTree::Clear() {
  std::fill(nodes_.begin(), nodes_.end(), Node{});
  // The leaves beyond the last slot are never the lowest.
  if (slots_ < leaves_) Raise(Range{slots_, leaves_}, kNoNeighbour);
}

void HeightTree::RaiseNode(int32_t node, int64_t height) {
  Node& n = nodes_[node];
  n.floor = std::max(n.floor, height);
  n.lowest = std::max(n.lowest, height);
  n.highest = std::max(n.highest, height);
}

void HeightTree::UpdateAbove(int32_t node) {
  for (node /= 2; node > 0; node /= 2) {
    const Node& a = nodes_[2 * node];
    const Node& b = nodes_[2 * node + 1];
    Node& n = nodes_[node];
    n.lowest = std::max(n.floor, std::min(a.lowest, b.lowest));
    n.highest = std::max(n.floor, std::max(a.highest, b.highest));
  }
}

void HeightTree::Raise(Range range, int64_t height) {
  ForNodes(leaves_, range, [&](int32_t node) { RaiseNode(node, height); });
  // Every node above one of the range is above its first or its last leaf.
  UpdateAbove(range.begin + leaves_);
  UpdateAbove(range.end - 1 + leaves_);
}

void HeightTree::Raise(const Line& line, int64_t height) {
  Raise(Range{line.begin, std::min(line.begin + line.length, slots_)}, height);
  if (line.begin + line.length > slots_) Raise(Range{0, line.begin + line.length - slots_}, height);
}

int64_t HeightTree::Highest(Range range) const {
  int64_t highest = 0;
  ForNodes(leaves_, range, [&](int32_t node) { highest = std::max(highest, nodes_[node].highest); });
  for (int32_t leaf : {range.begin + leaves_, range.end - 1 + leaves_}) {
    for (int32_t node = leaf; node > 0; node /= 2) highest = std::max(highest, nodes_[node].floor);
  }
  return highest;
}

int64_t HeightTree::At(int32_t slot) const { return Highest({slot, slot + 1}); }

HeightTree::Line HeightTree::Lowest() const {
  int32_t node = 1;
  while (node < leaves_) node = 2 * node + (nodes_[2 * node + 1].lowest < nodes_[2 * node].lowest ? 1 : 0);
  // A floor above hides what is below it: the line then begins wherever the descent came out, or before.
  const int64_t height = nodes_[1].lowest;
  int32_t begin = BeginOfLine(node - leaves_, height);
  int32_t end = EndOfLine(node - leaves_, height);
  if (ring_ && begin == 0 && end < slots_ && At(slots_ - 1) == height) {
    begin = BeginOfLine(slots_ - 1, height);
    end += slots_;
  }
  return {begin, end - begin, height};
}

// The first slot after `slot` that is higher than `height`, the least height of all.
int32_t HeightTree::EndOfLine(int32_t slot, int64_t height) const {
  int32_t node = slot + leaves_;
  do {
    while (node % 2 == 1) node /= 2;
    if (node == 0) return slots_;
    ++node;
  } while (nodes_[node].highest <= height);
  bool floored = false;  // by a node that was come through
  while (node < leaves_) {
    floored |= nodes_[node].floor > height;
    node = 2 * node + (floored || nodes_[2 * node].highest > height ? 0 : 1);
  }
  return std::min(node - leaves_, slots_);
}

// The slot after the last one before `slot` that is higher than `height`, the least height of all.
int32_t HeightTree::BeginOfLine(int32_t slot, int64_t height) const {
  int32_t node = slot + leaves_;
  do {
    while (node % 2 == 0) node /= 2;
    if (node <= 1) return 0;
    --node;
  } while (nodes_[node].highest <= height);
  bool floored = false;
  while (node < leaves_) {
    floored |= nodes_[node].floor > height;
    node = 2 * node + (floored || nodes_[2 * node + 1].highest > height ? 1 : 0);
  }
  return node - leaves_ + 1;
}

int64_t HeightTree::LowerNeighbour(const Line& line) const {
  if (line.length >= slots_) return kNoNeighbour;
  int64_t lower = kNoNeighbour;
  const int32_t before = line.begin - 1;
  const int32_t after = line.begin + line.length;
  if (before >= 0 || ring_) lower = std::min(lower, At(before >= 0 ? before : slots_ - 1));
  if (after < slots_ || ring_) lower = std::min(lower, At(after < slots_ ? after : after - slots_));
  return lower;
}

LoadTree::LoadTree(int32_t slots)
    : slots_(slots), leaves_(LeavesFor(slots)), nodes_(2 * static_cast<size_t>(leaves_)), waiters_(slots) {}

void LoadTree::Reset(const std::vector<int64_t>& load) {
  std::fill(nodes_.begin(), nodes_.end(), Node{});
  for (auto& waiters : waiters_) waiters.clear();
  for (int32_t slot = 0; slot < slots_; ++slot) nodes_[leaves_ + slot].largest = load[slot];
  for (int32_t node = leaves_ - 1; node > 0; --node) Update(node);
}

void LoadTree::AddToNode(int32_t node, int64_t bytes) {
  Node& n = nodes_[node];
  n.added += bytes;
  n.largest += bytes;
  if (n.waiting != kNobody) n.waiting += bytes;
}

void LoadTree::Update(int32_t node) {
  const Node& a = nodes_[2 * node];
  const Node& b = nodes_[2 * node + 1];
  Node& n = nodes_[node];
  n.largest = n.added + std::max(a.largest, b.largest);
  const int64_t waiting = std::min(a.waiting, b.waiting);
  n.waiting = waiting == kNobody ? kNobody : n.added + waiting;
}

void LoadTree::UpdateAbove(int32_t node) {
  for (node /= 2; node > 0; node /= 2) Update(node);
}

void LoadTree::Add(Range range, int64_t bytes) {
  ForNodes(leaves_, range, [&](int32_t node) { AddToNode(node, bytes); });
  UpdateAbove(range.begin + leaves_);
  UpdateAbove(range.end - 1 + leaves_);
}

LoadTree::Peak LoadTree::Largest(Range range) const {
  Peak peak = Search(1, {0, leaves_}, range);
  int32_t node = peak.slot;  // not a slot yet
  while (node < leaves_) node = 2 * node + (nodes_[2 * node + 1].largest > nodes_[2 * node].largest ? 1 : 0);
  return {peak.load, node - leaves_};
}

// The largest load within a node's part of the range, and a node of the range that has it.
LoadTree::Peak LoadTree::Search(int32_t node, Range of_node, Range range) const {
  if (range.begin <= of_node.begin && of_node.end <= range.end) return {nodes_[node].largest, node};
  const int32_t middle = (of_node.begin + of_node.end) / 2;
  const int64_t added = nodes_[node].added;
  if (range.end <= middle) {
    const Peak left = Search(2 * node, {of_node.begin, middle}, range);
    return {left.load + added, left.slot};
  }
  const Peak right = Search(2 * node + 1, {middle, of_node.end}, range);
  if (range.begin >= middle) return {right.load + added, right.slot};
  const Peak left = Search(2 * node, {of_node.begin, middle}, range);
  return left.load >= right.load ? Peak{left.load + added, left.slot} : Peak{right.load + added, right.slot};
}

void LoadTree::SetWaiting(int32_t slot) {
  Node& leaf = nodes_[leaves_ + slot];
  leaf.waiting = waiters_[slot].empty() ? kNobody : leaf.largest + waiters_[slot].front().height;
  UpdateAbove(leaves_ + slot);
}

void LoadTree::Wait(int32_t slot, int64_t height, int32_t who) {
  waiters_[slot].push_back({height, who});
  std::push_heap(waiters_[slot].begin(), waiters_[slot].end());
  SetWaiting(slot);
}

int32_t LoadTree::Wake() {
  int32_t node = 1;
  while (node < leaves_) node = 2 * node + (nodes_[2 * node + 1].waiting < nodes_[2 * node].waiting ? 1 : 0);
  const int32_t slot = node - leaves_;
  std::pop_heap(waiters_[slot].begin(), waiters_[slot].end());
  const int32_t who = waiters_[slot].back().who;
  waiters_[slot].pop_back();
  SetWaiting(slot);
  return who;
}

}  // namespace reprise::planner
