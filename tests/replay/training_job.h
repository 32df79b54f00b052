// A small training job as a sequence of calls: enough structure to have a period, a swing and a cut.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/types.h"

namespace reprise::replay {

// Builds a consistent sequence of events.
class EventScript {
 public:
  BlockId Alloc(int64_t bytes, Stream stream = Stream{0}) {
    const BlockId id{next_++};
    events_.push_back(
        {.kind = profiler::EventKind::kAlloc, .id = id, .bytes = Bytes(bytes), .stream = stream});
    return id;
  }
  void Free(BlockId id) { events_.push_back({.kind = profiler::EventKind::kFree, .id = id}); }
  const std::vector<profiler::Event>& events() const { return events_; }

 private:
  uint64_t next_ = 0;
  std::vector<profiler::Event> events_;
};

struct TrainingShape {
  int layers = 12;
  int64_t scale = 64 * 1024;  // bytes; layer i has an activation of (i % 5 + 3) * scale
  bool state = true;          // of the optimizer's
};

// Weights once, then iterations: activations forward, gradients and a temporary a layer backward, gradients
// freed when the next iteration begins. The first iteration also allocates the optimizer's state, which
// stays.
class TrainingJob {
 public:
  explicit TrainingJob(EventScript* script, TrainingShape shape = {}) : script_(script), shape_(shape) {
    for (int i = 0; i < shape_.layers; ++i) script_->Alloc((i + 1) * shape_.scale);
  }

  void Iterate(int iterations) {
    for (int i = 0; i < iterations; ++i) Step();
  }

  // A forward pass with other sizes, nothing kept.
  void Evaluate() {
    for (int i = 0; i < shape_.layers; ++i)
      script_->Free(script_->Alloc((i % 7 + 2) * shape_.scale + i * 1536));
  }

 private:
  void Step() {
    for (const BlockId gradient : gradients_) script_->Free(gradient);
    gradients_.clear();
    std::vector<BlockId> activations;
    for (int i = 0; i < shape_.layers; ++i) {
      activations.push_back(script_->Alloc((i % 5 + 3) * shape_.scale + i * 512));
      script_->Free(script_->Alloc(600 + i));  // a small block: no token
    }
    for (int i = shape_.layers - 1; i >= 0; --i) {
      const BlockId temporary = script_->Alloc(2 * shape_.scale + i * 1024);
      gradients_.push_back(script_->Alloc((i + 1) * shape_.scale));
      script_->Free(temporary);
      script_->Free(activations[i]);
    }
    for (int i = 0; first_ && shape_.state && i < shape_.layers; ++i) script_->Alloc((i + 1) * shape_.scale);
    first_ = false;
  }

  EventScript* script_;
  const TrainingShape shape_;
  bool first_ = true;
  std::vector<BlockId> gradients_;
};

inline void AppendTraining(EventScript& script, int iterations, const TrainingShape& shape = {}) {
  TrainingJob(&script, shape).Iterate(iterations);
}

}  // namespace reprise::replay
