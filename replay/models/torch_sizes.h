// The sizes by which PyTorch's caching allocator goes, with and without expandable segments.
#pragma once

#include "base/units.h"

namespace reprise::replay {

inline constexpr Bytes kTorchUnit{512};                 // every block is a multiple of it
inline constexpr Bytes kTorchMostSmall{kMiB};           // larger blocks live in the pool of large ones
inline constexpr Bytes kTorchSmallSegment{kMiB * 2};    // shared by small blocks
inline constexpr Bytes kTorchSharedSegment{kMiB * 20};  // shared by large blocks below the next
inline constexpr Bytes kTorchLeastOwn{kMiB * 10};       // from here on a block gets a segment of its own
inline constexpr Bytes kTorchOwnUnit{kMiB * 2};         // a multiple of it

// A request, of at least a byte, as the allocator rounds it.
inline Bytes TorchRounded(Bytes bytes) { return RoundUp(bytes, kTorchUnit); }

inline bool TorchIsSmall(Bytes rounded) { return rounded <= kTorchMostSmall; }

// What is asked of the driver for a block that no cached one fits.
inline Bytes TorchSegmentSize(Bytes rounded) {
  if (TorchIsSmall(rounded)) return kTorchSmallSegment;
  if (rounded < kTorchLeastOwn) return kTorchSharedSegment;
  return RoundUp(rounded, kTorchOwnUnit);
}

}  // namespace reprise::replay
