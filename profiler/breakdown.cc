#include "profiler/breakdown.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "profiler/live_allocations.h"
#include "profiler/sites.h"

namespace reprise::profiler {

std::vector<StreamUse> ByStream(const std::vector<Event>& events, int64_t peak_at) {
  struct Live {
    Bytes bytes;
    int64_t blocks = 0;
  };
  std::vector<StreamUse> uses;
  std::vector<Live> live;
  absl::flat_hash_map<Stream, size_t> index_of;
  LiveAllocations allocations;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (const auto [alloc, bytes] = allocations.Add(event); alloc != nullptr) {
      const bool comes = event.kind == EventKind::kAlloc;
      const auto [it, added] = index_of.try_emplace(alloc->stream, uses.size());
      if (added) {
        uses.push_back({.stream = alloc->stream});
        live.emplace_back();
      }
      StreamUse& use = uses[it->second];
      Live& now = live[it->second];
      now.bytes += bytes;
      now.blocks += comes ? 1 : -1;
      use.live_peak = std::max(use.live_peak, now.bytes);
      if (comes) {
        ++use.allocs;
        use.allocated += bytes;
      }
    }
    if (static_cast<int64_t>(i) != peak_at) continue;
    for (size_t k = 0; k < uses.size(); ++k) {
      uses[k].at_peak = live[k].bytes;
      uses[k].blocks_at_peak = live[k].blocks;
    }
  }
  return uses;
}

std::vector<LibraryUse> ByLibrary(const StackTable& table, std::span<const StackBytes> stacks) {
  std::map<std::string, LibraryUse> sums;
  for (const StackBytes& stack : stacks) {
    const std::string library = LibraryThatAsked(table, stack.stack);
    LibraryUse& sum = sums[library];
    sum.library = library;
    sum.blocks += stack.blocks;
    sum.bytes += stack.bytes;
  }
  std::vector<LibraryUse> uses;
  if (sums.size() == sums.count("")) return uses;
  for (const auto& [name, sum] : sums) uses.push_back(sum);
  std::ranges::stable_sort(uses, std::ranges::greater(), &LibraryUse::bytes);
  return uses;
}

}  // namespace reprise::profiler
