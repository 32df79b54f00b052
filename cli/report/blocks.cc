#include "cli/report/blocks.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "profiler/lifetimes.h"

namespace reprise::cli {
namespace {

void ChooseDrawn(size_t most, BlockTable& table) {
  table.drawn.resize(table.all.size());
  std::iota(table.drawn.begin(), table.drawn.end(), 0u);
  if (table.drawn.size() <= most) return;
  const auto area = [&](uint32_t i) {
    const DrawnBlock& block = table.all[i];
    return static_cast<double>(table.kinds[block.kind].bytes.count()) * (block.end - block.start);
  };
  const auto last = table.drawn.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(table.drawn.begin(), last, table.drawn.end(), [&](uint32_t a, uint32_t b) {
    const double area_a = area(a), area_b = area(b);
    return area_a != area_b ? area_a > area_b : a < b;
  });
  for (auto it = last; it != table.drawn.end(); ++it) {
    table.largest_left = std::max(table.largest_left, table.kinds[table.all[*it].kind].bytes);
  }
  table.drawn.erase(last, table.drawn.end());
  std::sort(table.drawn.begin(), table.drawn.end());
}

}  // namespace

BlockTable BlocksOf(const std::vector<profiler::Event>& events, size_t most) {
  BlockTable table;
  absl::flat_hash_map<Stream, uint32_t> streams;
  absl::flat_hash_map<std::tuple<int64_t, uint32_t, uint32_t>, uint32_t> kinds;
  for (const profiler::BlockLifetime& block : profiler::LifetimesOf(events)) {
    const profiler::Event& alloc = events[static_cast<size_t>(block.alloc.count())];
    const auto [stream, new_stream] =
        streams.try_emplace(alloc.stream, static_cast<uint32_t>(table.streams.size()));
    if (new_stream) table.streams.push_back(alloc.stream);
    const auto stack = static_cast<uint32_t>(alloc.stack);
    const auto [kind, new_kind] = kinds.try_emplace({alloc.bytes.count(), stack, stream->second},
                                                    static_cast<uint32_t>(table.kinds.size()));
    if (new_kind) table.kinds.push_back({alloc.bytes, alloc.stack, stream->second});
    table.all.push_back({static_cast<uint32_t>(block.alloc.count()),
                         static_cast<uint32_t>(block.free.count()), kind->second});
  }
  ChooseDrawn(most, table);
  return table;
}

TimelinePoints PointsOf(std::span<const profiler::Event> events, const BlockTable& blocks, size_t most) {
  TimelinePoints points;
  points.step = std::max<int64_t>(1, static_cast<int64_t>((events.size() + most - 1) / most));
  const size_t count =
      (events.size() + static_cast<size_t>(points.step) - 1) / static_cast<size_t>(points.step);
  points.least.resize(count);
  points.most.resize(count);
  points.not_drawn.resize(count);
  const bool timed = !events.empty() && events.back().time_ns > 0;
  if (timed) points.time_us.resize(count);
  // By event, what a block that is not drawn adds or takes away.
  std::vector<double> hidden;
  if (blocks.drawn.size() < blocks.all.size()) {
    hidden.resize(events.size() + 1);
    size_t next = 0;
    for (uint32_t i = 0; i < blocks.all.size(); ++i) {
      if (next < blocks.drawn.size() && blocks.drawn[next] == i) {
        ++next;
        continue;
      }
      const DrawnBlock& block = blocks.all[i];
      const auto bytes = static_cast<double>(blocks.kinds[block.kind].bytes.count());
      hidden[block.start] += bytes;
      hidden[block.end] -= bytes;
    }
  }
  std::vector<Bytes> freed(events.size());
  for (const DrawnBlock& block : blocks.all) {
    if (block.end < events.size()) freed[block.end] = blocks.kinds[block.kind].bytes;
  }
  double live = 0, not_drawn = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const profiler::Event& event = events[i];
    if (event.kind == profiler::EventKind::kAlloc) live += static_cast<double>(event.bytes.count());
    live -= static_cast<double>(freed[i].count());
    if (!hidden.empty()) not_drawn += hidden[i];
    const size_t point = i / static_cast<size_t>(points.step);
    const bool first = i % static_cast<size_t>(points.step) == 0;
    points.least[point] = first ? live : std::min(points.least[point], live);
    points.most[point] = first ? live : std::max(points.most[point], live);
    points.not_drawn[point] = first ? not_drawn : std::max(points.not_drawn[point], not_drawn);
    if (timed && first) points.time_us[point] = static_cast<double>(event.time_ns) / 1000;
  }
  return points;
}

std::vector<double> LargestOfEach(std::span<const Bytes> series, int64_t step) {
  std::vector<double> largest;
  for (size_t i = 0; i < series.size(); ++i) {
    const auto value = static_cast<double>(series[i].count());
    if (i % static_cast<size_t>(step) == 0) {
      largest.push_back(value);
    } else {
      largest.back() = std::max(largest.back(), value);
    }
  }
  return largest;
}

}  // namespace reprise::cli
