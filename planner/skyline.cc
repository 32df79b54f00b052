#include "planner/skyline.h"

#include <algorithm>
#include <numeric>

namespace reprise::planner {
namespace {

constexpr int64_t kStepsOfALook = 8;
constexpr int64_t kMostLooks = 16;  // for each buffer, on average

std::vector<int64_t> HeightsOf(const Instance& instance, int64_t grain) {
  std::vector<int64_t> heights;
  heights.reserve(instance.size.size());
  for (int64_t size : instance.size) heights.push_back(RoundUpTo(size, grain));
  return heights;
}

}  // namespace

Skyline::Skyline(const Instance& instance)
    : instance_(instance),
      grain_(CommonAlignment(instance)),
      heights_(HeightsOf(instance, grain_)),
      free_(FreeBuffers(instance)),
      obstacles_(PinnedBuffers(instance)),
      floors_(instance.slots, instance.cyclic),
      lines_(instance.slots, instance.cyclic),
      loads_(instance.slots),
      unplaced_(instance, free_, heights_),
      rank_(instance.buffers()) {
  if (obstacles_.empty()) return;
  around_obstacles_ = std::make_unique<FirstFit>(instance);
  around_obstacles_->Clear();
}

FirstFit::Outcome Skyline::Place(std::span<const int32_t> order, int64_t goal, int64_t limit, Search& search,
                                 std::vector<int64_t>& offsets) {
  Begin(order, goal);
  const bool limited = limit < Search::kNothing / 2;
  if (limited) limit = RoundUpTo(limit, grain_);
  const int64_t most = looks_ + kMostLooks * static_cast<int64_t>(free_.size());
  while (laid_ < free_.size()) {
    const int64_t looks = looks_;
    if (limited && looks > most) return FirstFit::Outcome::kTooHigh;
    if (!LayNext()) {
      if (loads_.LeastWaiting() > limit) return FirstFit::Outcome::kTooHigh;
      RaiseGoal();
    }
    if (search.Stop(kStepsOfALook * (looks_ - looks + 1))) return FirstFit::Outcome::kStopped;
  }
  offsets = offsets_;
  return FirstFit::Outcome::kComplete;
}

void Skyline::Begin(std::span<const int32_t> order, int64_t goal) {
  goal_ = RoundUpTo(goal, grain_);
  laid_ = 0;
  next_obstacle_ = 0;
  offsets_ = instance_.pinned;
  ready_ = {};
  for (size_t rank = 0; rank < order.size(); ++rank) rank_[order[rank]] = static_cast<int32_t>(rank);
  floors_.Clear();
  lines_.Clear();
  unplaced_.Reset(order);
  std::vector<int64_t> load(instance_.slots + 1, 0);
  for (int32_t i = 0; i < instance_.buffers(); ++i) {
    for (const Range& range : instance_.ranges(i)) {
      load[range.begin] += heights_[i];
      load[range.end] -= heights_[i];
    }
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  loads_.Reset(load);
}

// Lays a buffer or lets one wait or lifts a line. False: all that are left wait.
bool Skyline::LayNext() {
  if (unplaced_.empty()) {
    if (ready_.empty()) return false;
    LayReady(nullptr);
    return true;
  }
  const HeightTree::Line line = lines_.Lowest();
  if (next_obstacle_ < obstacles_.size() && instance_.pinned[obstacles_[next_obstacle_]] <= line.height) {
    LayObstacles(line.height);
    return true;
  }
  if (!LayReady(&line)) LayFromLine(line);
  return true;
}

// Lays the lowest of the ready ones, unless it lies above the line.
bool Skyline::LayReady(const HeightTree::Line* line) {
  if (ready_.empty()) return false;
  const Ready top = ready_.top();
  if (line != nullptr && top.offset > line->height) return false;
  ready_.pop();
  const int64_t offset = LowestOffset(top.buffer);
  if (offset > top.offset) {
    ready_.push({offset, top.rank, top.buffer});
  } else {
    LayOrWait(top.buffer, offset);
  }
  return true;
}

void Skyline::LayFromLine(const HeightTree::Line& line) {
  const int32_t rank = BestWithin(line);
  if (rank == Unplaced::kNoRank) {
    lines_.Raise(line, lines_.LowerNeighbour(line));
    return;
  }
  const int32_t buffer = unplaced_.buffer(rank);
  unplaced_.Take(buffer);
  const int64_t offset = LowestOffset(buffer);
  if (offset > line.height) {
    ready_.push({offset, rank, buffer});
  } else {
    LayOrWait(buffer, offset);
  }
}

int32_t Skyline::BestWithin(const HeightTree::Line& line) {
  const int32_t slots = instance_.slots;
  if (line.length == slots) return unplaced_.Find(0, 2 * slots, Search::kNothing);
  const int32_t end = line.begin + line.length;
  const int32_t rank = unplaced_.Find(line.begin, end, Search::kNothing);
  // A line that goes past the end of the cycle takes buffers that begin there as well.
  return end > slots ? std::min(rank, unplaced_.Find(0, end - slots, Search::kNothing)) : rank;
}

int64_t Skyline::LowestOffset(int32_t buffer) {
  ++looks_;
  int64_t offset = 0;
  for (const Range& range : instance_.ranges(buffer)) offset = std::max(offset, floors_.Highest(range));
  offset = RoundUpTo(offset, instance_.alignment[buffer]);
  return around_obstacles_ == nullptr ? offset : around_obstacles_->LowestFree(buffer, offset);
}

Skyline::Need Skyline::NeedOf(int32_t buffer, int64_t offset) const {
  Need need{0, offset, 0};
  for (const Range& range : instance_.ranges(buffer)) {
    const LoadTree::Peak peak = loads_.Largest(range);
    if (offset + peak.load > need.height) need = {offset + peak.load, offset, peak.slot};
  }
  return need;
}

void Skyline::LayOrWait(int32_t buffer, int64_t offset) {
  const Need need = NeedOf(buffer, offset);
  if (need.height > goal_) {
    loads_.Wait(need.slot, offset, buffer);
  } else {
    Lay(buffer, offset);
  }
}

void Skyline::Lay(int32_t buffer, int64_t offset) {
  ++laid_;
  offsets_[buffer] = offset;
  const int64_t top = offset + heights_[buffer];
  for (const Range& range : instance_.ranges(buffer)) {
    floors_.Raise(range, top);
    lines_.Raise(range, top);
    loads_.Add(range, -heights_[buffer]);
  }
  WakeAll();
}

// Those whose slot no longer lacks room may still lack it elsewhere, or higher up by now.
void Skyline::WakeAll() {
  while (loads_.LeastWaiting() <= goal_) {
    const int32_t buffer = loads_.Wake();
    const Need need = NeedOf(buffer, LowestOffset(buffer));
    if (need.height > goal_) {
      loads_.Wait(need.slot, need.offset, buffer);
    } else {
      ready_.push({need.offset, rank_[buffer], buffer});
    }
  }
}

// A waiter's sum is at most what it needs, and exactly that once it has been looked at.
void Skyline::RaiseGoal() {
  for (;;) {
    const int32_t buffer = loads_.Wake();
    const Need need = NeedOf(buffer, LowestOffset(buffer));
    loads_.Wait(need.slot, need.offset, buffer);
    if (need.height <= loads_.LeastWaiting()) {
      goal_ = std::max(goal_, need.height);
      break;
    }
  }
  WakeAll();
}

void Skyline::LayObstacles(int64_t height) {
  while (next_obstacle_ < obstacles_.size() && instance_.pinned[obstacles_[next_obstacle_]] <= height) {
    const int32_t obstacle = obstacles_[next_obstacle_++];
    const int64_t top = RoundUpTo(instance_.pinned[obstacle] + instance_.size[obstacle], grain_);
    for (const Range& range : instance_.ranges(obstacle)) {
      floors_.Raise(range, top);
      lines_.Raise(range, top);
      loads_.Add(range, -heights_[obstacle]);
    }
  }
  WakeAll();
}

}  // namespace reprise::planner
