// The sizes by which PyTorch's caching allocator goes, with and without expandable segments.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/units.h"

namespace reprise::replay {

inline constexpr Bytes kTorchUnit{512};                 // every block is a multiple of it
inline constexpr Bytes kTorchMostSmall{kMiB};           // larger blocks live in the pool of large ones
inline constexpr Bytes kTorchSmallSegment{kMiB * 2};    // shared by small blocks
inline constexpr Bytes kTorchSharedSegment{kMiB * 20};  // shared by large blocks below the next
inline constexpr Bytes kTorchLeastOwn{kMiB * 10};       // from here on a block gets a segment of its own
inline constexpr Bytes kTorchOwnUnit{kMiB * 2};         // a multiple of it
inline constexpr Bytes kTorchNoLimit{std::numeric_limits<int64_t>::max()};

// What PYTORCH_CUDA_ALLOC_CONF sets.
struct TorchOptions {
  Bytes max_split_size = kTorchNoLimit;  // blocks from here on are not split
  double garbage_collection_threshold =
      0;                                 // share of the capacity above which old cached segments go; 0: never
  int64_t roundup_power2_divisions = 0;  // a power of two; 0 or 1: round to the unit alone
};

// A request as the allocator rounds it. With divisions, sizes between two powers of two go up to one of so
// many equal steps between them.
inline Bytes TorchRounded(Bytes bytes, const TorchOptions& options = {}) {
  const int64_t divisions = options.roundup_power2_divisions;
  if (bytes <= kTorchUnit) return kTorchUnit;
  if (divisions <= 1 || bytes <= kTorchUnit * divisions) return RoundUp(bytes, kTorchUnit);
  const auto count = static_cast<uint64_t>(bytes.count());
  if (std::has_single_bit(count)) return bytes;
  const Bytes step(static_cast<int64_t>(std::bit_floor(count)) / divisions);
  return RoundUp(bytes, step);
}

inline bool TorchIsSmall(Bytes rounded) { return rounded <= kTorchMostSmall; }

// What is asked of the driver for a block that no cached one fits.
inline Bytes TorchSegmentSize(Bytes rounded) {
  if (TorchIsSmall(rounded)) return kTorchSmallSegment;
  if (rounded < kTorchLeastOwn) return kTorchSharedSegment;
  return RoundUp(rounded, kTorchOwnUnit);
}

}  // namespace reprise::replay
