// Feeds a job's recorded events through a model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "profiler/types.h"
#include "replay/models/model.h"
#include "replay/track.h"

namespace reprise::replay {

struct ModelResult {
  Bytes reserved_peak;
  Bytes allocated_peak;
  int64_t driver_allocations = 0;
  std::optional<int64_t> failed_at;  // index of the event at which memory was out; the rest was not replayed
  int64_t overlaps = 0;              // as an independent checker counted them; anything but 0 is a defect
  int64_t ignored = 0;               // blocks of no bytes, frees of blocks that are not live
  bool stopped = false;              // told to; the rest was not replayed
};

ModelResult RunModel(std::span<const profiler::Event> events, AllocatorModel& model, const Watch& watch = {});

}  // namespace reprise::replay
