#include "profiler/site_stats.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "profiler/lifetimes.h"
#include "profiler/live_allocations.h"

namespace reprise::profiler {

SiteTable SitesOf(const StackTable& stacks) {
  SiteTable table;
  std::map<std::tuple<std::string, std::string, std::string>, uint32_t> known;
  for (uint32_t i = 0; i <= stacks.stacks(); ++i) {
    Site site = SiteOf(stacks, StackId(i));
    const auto [it, added] =
        known.try_emplace({site.label, site.file, site.library}, static_cast<uint32_t>(table.sites.size()));
    if (added) table.sites.push_back(std::move(site));
    table.site_of_stack.push_back(it->second);
  }
  return table;
}

std::vector<StackBytes> StacksLiveAt(const std::vector<Event>& events, int64_t at) {
  std::map<StackId, StackBytes> sums;
  for (const Event* alloc : LiveAt(events, at)) {
    StackBytes& sum = sums[alloc->stack];
    sum.stack = alloc->stack;
    ++sum.blocks;
    sum.bytes += alloc->bytes;
  }
  std::vector<StackBytes> stacks;
  stacks.reserve(sums.size());
  for (const auto& [stack, sum] : sums) stacks.push_back(sum);
  std::stable_sort(stacks.begin(), stacks.end(),
                   [](const StackBytes& a, const StackBytes& b) { return a.bytes > b.bytes; });
  return stacks;
}

std::vector<SiteBytes> BySite(const SiteTable& table, std::span<const StackBytes> stacks) {
  std::map<uint32_t, SiteBytes> sums;
  for (const StackBytes& stack : stacks) {
    const uint32_t site = table.site_of_stack[static_cast<size_t>(stack.stack)];
    SiteBytes& sum = sums[site];
    sum.site = site;
    sum.blocks += stack.blocks;
    sum.bytes += stack.bytes;
  }
  std::vector<SiteBytes> sites;
  sites.reserve(sums.size());
  for (const auto& [site, sum] : sums) sites.push_back(sum);
  std::stable_sort(sites.begin(), sites.end(),
                   [](const SiteBytes& a, const SiteBytes& b) { return a.bytes > b.bytes; });
  return sites;
}

std::vector<Bytes> PeaksWithout(const std::vector<Event>& events, const SiteTable& table,
                                std::span<const uint32_t> sites) {
  const size_t none = sites.size();
  std::vector<size_t> column_of(table.sites.size(), none);
  for (size_t i = 0; i < sites.size(); ++i) column_of[sites[i]] = i;
  LiveAllocations live;
  std::vector<Bytes> held(sites.size() + 1), peaks(sites.size());
  for (const Event& event : events) {
    const auto [alloc, bytes] = live.Add(event);
    if (alloc == nullptr) continue;
    held[column_of[table.site_of_stack[static_cast<size_t>(alloc->stack)]]] += bytes;
    if (event.kind != EventKind::kAlloc) continue;
    for (size_t i = 0; i < peaks.size(); ++i) peaks[i] = std::max(peaks[i], live.bytes() - held[i]);
  }
  return peaks;
}

}  // namespace reprise::profiler
