// What an allocator did at each event, for those who draw it, and how they stop it when it takes too long.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"

namespace reprise::replay {

struct Track {
  static constexpr Offset kNowhere{-1};
  std::vector<Offset> offsets;  // by event: where the block of an allocation was placed
  std::vector<Bytes> reserved;  // by event: held from the driver right after it
};

struct Watch {
  Track* track = nullptr;      // filled where there is one
  std::function<bool()> stop;  // asked now and then; empty: never
  static constexpr size_t kAskEvery = 4096;

  bool ShouldStop(size_t event) const { return event % kAskEvery == 0 && stop && stop(); }
  void Begin(size_t events) const {
    if (track == nullptr) return;
    track->offsets.assign(events, Track::kNowhere);
    track->reserved.assign(events, Bytes(0));
  }
};

}  // namespace reprise::replay
