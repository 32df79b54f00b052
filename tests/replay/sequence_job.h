// A job of which only the sequence is there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "planner/portfolio.h"
#include "replay/sequence.h"

namespace reprise::replay {

using Sizes = std::vector<int64_t>;

// Allocates and frees in a sequence. What it is to plan is planned at once, or when told to.
class SequenceJob {
 public:
  explicit SequenceJob(Sequence::Rules rules = {}) : sequence({}, rules) {}
  Tick Alloc(int64_t bytes, Stream stream = {}) {
    Sequence::Step step;
    sequence.OnAlloc(Bytes(bytes), Bytes(512), stream, live_, step);
    live_ += Bytes(bytes);
    if (step.at_cut) {
      adopted_at.push_back(step.slot);
      sequence.Adopt(sequence.candidate_from());
    }
    resumed += step.resumed;
    slots.push_back(step.slot);
    if (!step.wants_plan || !asks) return step.token;
    const std::optional<profiler::Iteration> iteration = sequence.IterationToPlan();
    if (!iteration.has_value()) return step.token;
    periods.push_back(iteration->period);
    asked_ = {MakeRequest(*iteration, {}), sequence.BeginPlanning()};
    if (at_once) PlanAsked();
    return step.token;
  }
  void Free(Tick block, int64_t bytes) {
    sequence.OnFree(block, Stream{});
    live_ -= Bytes(bytes);
  }
  // Nothing of it outlives it.
  void Round(const Sizes& sizes) {
    std::vector<Tick> blocks;
    for (const int64_t bytes : sizes) blocks.push_back(Alloc(bytes));
    for (size_t i = 0; i < sizes.size(); ++i) Free(blocks[i], sizes[i]);
  }
  void Rounds(int count, const Sizes& sizes) {
    for (int i = 0; i < count; ++i) Round(sizes);
  }
  bool waits() const { return asked_.second != nullptr && !asked_.second->ready; }
  void PlanAsked() { Plan(asked_.first, 0.01, *asked_.second, solve); }

  Sequence sequence;
  bool asks = true;
  bool at_once = true;
  Solver solve = planner::Solve;
  int resumed = 0;
  std::vector<int64_t> periods;      // to plan
  std::vector<uint32_t> adopted_at;  // slots
  std::vector<uint32_t> slots;       // of all that was allocated

 private:
  std::pair<PlanRequest, std::shared_ptr<Candidate>> asked_;
  Bytes live_;
};

// Of the plans it has, the shortest first.
inline std::vector<size_t> LengthsOf(const Sequence& sequence) {
  std::vector<size_t> lengths;
  for (const Sequence::Known& known : sequence.KnownPlans()) lengths.push_back(known.cycle.size());
  std::ranges::sort(lengths);
  return lengths;
}

// No four of them in a row come twice.
inline Sizes SizesOf(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Sizes sizes(count);
  for (int64_t& bytes : sizes) bytes = 4096 * (1 + static_cast<int64_t>(random() % 1000));
  return sizes;
}

}  // namespace reprise::replay
