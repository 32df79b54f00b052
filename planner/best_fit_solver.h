// Best-fit as a member of the portfolio: by lifetimes that are dear where memory is scarce.
#pragma once

#include <string_view>

#include "planner/search.h"
#include "planner/solver.h"

namespace reprise::planner {

// One pass of best-fit (best_fit.h). Of the buffers that fit on a line it takes not the one with the longest
// lifetime, but the one whose lifetime is worth the most, each slot at a price that grows exponentially with
// its load: what a line leaves free is lost, and that hurts at the peak alone.
void PlaceByBestFit(Search& search, std::string_view name);

// Pass after pass. After each one prices rise where the skyline ended high, by a factor exponential in its
// height: the multiplicative weights of packing problems (Plotkin, Shmoys and Tardos, *Fast approximation
// algorithms for fractional packing and covering problems*, 1995). So what a pass could not avoid losing goes
// where there is room for it. The first turn is one pass. Deterministic without random numbers. Gives up
// after many passes in a row that brought nothing.
Turn BeginBestFit(Search& search, std::string_view name);

// The same with chains (best_fit.h): a line is given what is worth the most together, each lifetime by a power
// of its worth, so that one that fills the line goes before many that do: these still fit elsewhere. A pass
// takes several times as long, and loses less where lifetimes hardly ever begin where others end.
Turn BeginChains(Search& search, std::string_view name);

// The large ones alone, and first-fit for the small (large_first.h), ever more of them large. A small buffer on a
// line takes little of it and leaves it ragged, and large ones that would have lain side by side no longer fit.
Turn BeginLargeByBestFit(Search& search, std::string_view name);

// The names of the rules.
inline constexpr std::string_view kBestFitPrices = "best-fit-prices";  // otherwise all slots cost the same
inline constexpr std::string_view kBestFitFeedback = "best-fit-feedback";  // otherwise one pass

}  // namespace reprise::planner
