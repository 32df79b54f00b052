// Streams and sizes that the tests of the models share.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace reprise::replay {

inline constexpr Stream kA{0}, kB{7};
inline constexpr Bytes kNoLimit{0};

inline Bytes MiB(int64_t n) { return kMiB * n; }

}  // namespace reprise::replay
