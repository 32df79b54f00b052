#include "cli/report/layouts.h"

#include <algorithm>
#include <utility>

namespace reprise::cli {
namespace {

constexpr Bytes kLongGap{int64_t{2} << 20};

// Ranges in which blocks lie, ascending and apart, and how far each moves down.
struct Used {
  Offset begin;
  Offset end;
  Bytes down;
};

std::vector<Used> UsedRanges(const BlockTable& blocks, std::span<const Offset> offsets) {
  std::vector<std::pair<Offset, Offset>> ranges;
  ranges.reserve(blocks.all.size());
  for (const DrawnBlock& block : blocks.all) {
    const Offset begin = offsets[block.start];
    if (begin >= Offset(0)) ranges.emplace_back(begin, begin + blocks.kinds[block.kind].bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  std::vector<Used> used;
  Offset reached;  // of the ranges so far
  Bytes down;
  for (const auto& [begin, end] : ranges) {
    const Bytes gap = begin - reached;
    if (used.empty() || gap > kLongGap) {
      if (gap > kLongGap) down += gap;
      used.push_back({begin, end, down});
    }
    used.back().end = std::max(used.back().end, end);
    reached = std::max(reached, end);
  }
  return used;
}

}  // namespace

Layout LayoutOf(std::string name, std::string meaning, const BlockTable& blocks,
                std::span<const Offset> offsets) {
  Layout layout{.name = std::move(name), .meaning = std::move(meaning), .offsets = {}};
  const std::vector<Used> used = UsedRanges(blocks, offsets);
  for (const uint32_t i : blocks.drawn) {
    const Offset offset = offsets[blocks.all[i].start];
    if (offset < Offset(0)) {
      layout.offsets.emplace_back(-1);
      continue;
    }
    const auto after = std::ranges::upper_bound(used, offset, {}, &Used::begin);
    layout.offsets.push_back(offset + Bytes(-std::prev(after)->down.count()));
  }
  if (!used.empty()) {
    layout.closed_up = used.back().down;
    layout.height = used.back().end - Offset(0) + Bytes(-used.back().down.count());
  }
  return layout;
}

}  // namespace reprise::cli
