// Stability: a problem that has changed a little keeps most of its offsets.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "planner/types.h"

namespace reprise::planner {

// How much higher than the lowest placement found one that keeps the previous offsets may be.
inline constexpr double kPriceOfKeeping = 0.01;

// Has any buffer an offset to be kept?
bool HasPrevious(const Problem& problem);

// Replaces the placement of `solution` by one that leaves the buffers at Buffer::previous as far as it can,
// without the slab going above kPriceOfKeeping more than it was; what an obstacle fills from the bottom on at
// all times is none of the slab here, so that lanes on top of each other do not pay for those below. First
// every previous offset that is within that limit and free is taken, from the bottom up; then the rest goes
// where it first fits, the largest first. Buffers that find no room make some by ejection (ejector.h): the
// fewer and the smaller those that have to move for it the better. Where that takes more moves than a thousand and
// one for four buffers, or `stop` says so or memory runs out, `solution` stays as it is. O(n log n), and O(n) a move.
void KeepPrevious(const Problem& problem, const std::function<bool()>& stop, Solution& solution);

// Gives the buffers of `problem` the offsets of an earlier placement of a problem that was much the same:
// `sizes` and `offsets` in its order of buffers. Both lists of sizes are walked side by side; where they
// differ, the nearer of the next places at which they agree again, within 64 buffers, is taken.
void AdoptPrevious(std::span<const Bytes> sizes, std::span<const Offset> offsets, Problem& problem);

// The buffers that lie where they were, as a share of those that were somewhere. Nothing when none
// was.
std::optional<double> ShareKept(const Problem& problem, const Placement& placement);

}  // namespace reprise::planner
