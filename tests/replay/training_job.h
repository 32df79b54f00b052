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
};

// Weights once, then iterations: activations forward, gradients and a temporary a layer backward, gradients
// freed when the next iteration begins. The first iteration also allocates the optimizer's state, which
// stays.
inline void AppendTraining(EventScript& script, int iterations, const TrainingShape& shape = {}) {
  std::vector<BlockId> gradients;
  for (int i = 0; i < shape.layers; ++i) script.Alloc((i + 1) * shape.scale);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (const BlockId gradient : gradients) script.Free(gradient);
    gradients.clear();
    std::vector<BlockId> activations;
    for (int i = 0; i < shape.layers; ++i) {
      activations.push_back(script.Alloc((i % 5 + 3) * shape.scale + i * 512));
      script.Free(script.Alloc(600 + i));  // a small block: no token
    }
    for (int i = shape.layers - 1; i >= 0; --i) {
      const BlockId temporary = script.Alloc(2 * shape.scale + i * 1024);
      gradients.push_back(script.Alloc((i + 1) * shape.scale));
      script.Free(temporary);
      script.Free(activations[i]);
    }
    for (int i = 0; iteration == 0 && i < shape.layers; ++i) script.Alloc((i + 1) * shape.scale);
  }
}

}  // namespace reprise::replay
