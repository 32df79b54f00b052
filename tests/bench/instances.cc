#include "tests/bench/instances.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "planner/problem.h"

namespace reprise::planner {
namespace {

// The distributions of <random> differ between libraries; this does not.
int64_t Below(std::mt19937_64& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}

// The load at each tick of a cycle, as differences are added to it.
class CycleLoad {
 public:
  explicit CycleLoad(int64_t period) : load_(static_cast<size_t>(period), 0) {}

  void Add(const Buffer& buffer) {
    for (int64_t tick = buffer.lower.count(); tick < buffer.upper.count(); ++tick) {
      load_[static_cast<size_t>(tick) % load_.size()] += buffer.size.count();
    }
  }
  int64_t Least() const { return *std::min_element(load_.begin(), load_.end()); }
  int64_t Largest() const { return *std::max_element(load_.begin(), load_.end()); }
  int64_t WhereLeast() const { return std::min_element(load_.begin(), load_.end()) - load_.begin(); }

 private:
  std::vector<int64_t> load_;
};

// `problem` with ticks from 0 on that have no holes: slots, of which there are few enough to add up loads.
Problem InSlots(const Problem& problem) {
  const Instance instance = Compress(problem);
  Problem slots = problem;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    slots.buffers[i].lower = Tick(instance.begin[i]);
    slots.buffers[i].upper = Tick(instance.end[i]);
  }
  slots.period = instance.slots;
  return slots;
}

}  // namespace

Problem Shuffled(const Problem& problem, uint64_t seed) {
  Problem shuffled = problem;
  std::mt19937_64 random(seed);
  for (size_t i = shuffled.buffers.size(); i > 1; --i) {
    std::swap(shuffled.buffers[i - 1],
              shuffled.buffers[static_cast<size_t>(Below(random, static_cast<int64_t>(i)))]);
  }
  return shuffled;
}

Problem Rescaled(const Problem& problem, int64_t sizes, int64_t ticks) {
  Problem rescaled = problem;
  for (Buffer& buffer : rescaled.buffers) {
    buffer.size = buffer.size * sizes;
    buffer.lower = Tick(buffer.lower.count() * ticks);
    buffer.upper = Tick(buffer.upper.count() * ticks);
  }
  if (rescaled.capacity) rescaled.capacity = *rescaled.capacity * sizes;
  return rescaled;
}

Problem Reversed(const Problem& problem) {
  Problem reversed = problem;
  for (Buffer& buffer : reversed.buffers) {
    std::swap(buffer.lower, buffer.upper);
    buffer.lower = Tick(-buffer.lower.count());
    buffer.upper = Tick(-buffer.upper.count());
  }
  return reversed;
}

Problem Cycle(const Problem& iteration, double share, uint64_t seed) {
  Problem cycle = InSlots(iteration);
  const int64_t period = *cycle.period;
  std::mt19937_64 random(seed);
  CycleLoad load(period);
  for (const Buffer& buffer : cycle.buffers) load.Add(buffer);
  const int64_t own = static_cast<int64_t>(cycle.buffers.size());
  while (static_cast<double>(load.Least()) < share * static_cast<double>(load.Largest())) {
    Buffer added = cycle.buffers[static_cast<size_t>(Below(random, own))];
    const int64_t length = 1 + Below(random, std::max<int64_t>(1, period / 2));
    const int64_t begin = (load.WhereLeast() + period - Below(random, length)) % period;
    added.lower = Tick(begin);
    added.upper = Tick(begin + length);
    // One that is too large for the valley would make a new peak, which could go on for ever.
    const int64_t room = load.Largest() - load.Least();
    added.size = Bytes(std::min(added.size.count(), std::max<int64_t>(1, room / 4)));
    load.Add(added);
    cycle.buffers.push_back(added);
  }
  return cycle;
}

LoadRange LoadsOf(const Problem& problem) {
  const std::vector<int64_t> load = LoadOfSlots(Compress(problem));
  const auto [least, largest] = std::minmax_element(load.begin(), load.end());
  return {Bytes(*least), Bytes(*largest)};
}

Problem HeldAcrossTheCut(const Problem& cycle) {
  Problem held = cycle;
  const Instance instance = Compress(cycle);  // which begins at the cut
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    Buffer& buffer = held.buffers[i];
    const bool crosses = instance.end[i] > instance.slots;
    buffer.lower = Tick(crosses ? 0 : instance.begin[i]);
    buffer.upper = Tick(crosses ? instance.slots : instance.end[i]);
    buffer.gaps.clear();
  }
  held.period.reset();
  return held;
}

}  // namespace reprise::planner
