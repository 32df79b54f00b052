#include "profiler/breakdown.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "profiler/sites.h"

namespace reprise::profiler {

std::vector<StreamUse> ByStream(const std::vector<Event>& events, int64_t peak_at) {
  struct Live {
    Bytes bytes;
    int64_t blocks = 0;
  };
  struct Block {
    Bytes bytes;
    size_t index;
  };
  std::vector<StreamUse> uses;
  std::vector<Live> live;
  absl::flat_hash_map<Stream, size_t> index_of;
  absl::flat_hash_map<BlockId, Block> blocks;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind == EventKind::kAlloc) {
      const auto [it, added] = index_of.try_emplace(event.stream, uses.size());
      if (added) {
        uses.push_back({.stream = event.stream});
        live.emplace_back();
      }
      StreamUse& use = uses[it->second];
      Live& now = live[it->second];
      blocks[event.id] = {event.bytes, it->second};
      now.bytes += event.bytes;
      ++now.blocks;
      ++use.allocs;
      use.allocated += event.bytes;
      use.live_peak = std::max(use.live_peak, now.bytes);
    } else if (event.kind == EventKind::kFree) {
      const auto it = blocks.find(event.id);
      if (it == blocks.end()) continue;
      live[it->second.index].bytes -= it->second.bytes;
      --live[it->second.index].blocks;
      blocks.erase(it);
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
