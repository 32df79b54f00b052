// How much of the live bytes each site has: at one moment, and what the peak would be without it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "profiler/sites.h"
#include "profiler/stacks.h"
#include "profiler/types.h"

namespace reprise::profiler {

// Every stack's site. Stacks that a person would name alike share one.
struct SiteTable {
  std::vector<Site> sites;              // [0] stands for events without a stack
  std::vector<uint32_t> site_of_stack;  // by StackId, 0 included
};
SiteTable SitesOf(const StackTable& stacks);

struct StackBytes {
  StackId stack{};
  int64_t blocks = 0;
  Bytes bytes;
};
// What is live right after the event `at`, most bytes first.
std::vector<StackBytes> StacksLiveAt(const std::vector<Event>& events, int64_t at);

struct SiteBytes {
  uint32_t site = 0;
  int64_t blocks = 0;
  Bytes bytes;
};
// The same by site, most bytes first.
std::vector<SiteBytes> BySite(const SiteTable& table, std::span<const StackBytes> stacks);

// For each of `sites` the live peak of a job that never allocates there. O(events * sites).
std::vector<Bytes> PeaksWithout(const std::vector<Event>& events, const SiteTable& table,
                                std::span<const uint32_t> sites);

}  // namespace reprise::profiler
