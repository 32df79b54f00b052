#include "profiler/csv_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "profiler/exports.h"
#include "profiler/lifetimes.h"

namespace reprise::profiler {

std::string ToEventCsv(const std::vector<Event>& events) {
  const bool aligned =
      std::ranges::any_of(events, [](const Event& event) { return event.alignment > Bytes(0); });
  std::string csv = aligned ? "event,id,bytes,stream,alignment\n" : "event,id,bytes,stream\n";
  const std::string_view none = aligned ? "," : "";
  const auto out = std::back_inserter(csv);
  for (const Event& event : events) {
    const uint64_t id = static_cast<uint64_t>(event.id), stream = static_cast<uint64_t>(event.stream);
    switch (event.kind) {
      case EventKind::kAlloc:
        fmt::format_to(out, "alloc,{},{},{}{}", id, event.bytes.count(), stream, none);
        if (event.alignment > Bytes(0)) fmt::format_to(out, "{}", event.alignment.count());
        csv += '\n';
        break;
      case EventKind::kFree:
        fmt::format_to(out, "free,{},,{}{}\n", id, stream, none);
        break;
      case EventKind::kMark:
        fmt::format_to(out, "mark,{},,{}\n", id, none);
        break;
    }
  }
  return csv;
}

std::string ToLifetimeCsv(const std::vector<Event>& events) {
  std::string csv = "id,lower,upper,size,alignment,lane\n";
  const auto out = std::back_inserter(csv);
  std::map<Stream, size_t> lanes;
  for (const BlockLifetime& block : LifetimesOf(events)) {
    const Event& alloc = events[static_cast<size_t>(block.alloc.count())];
    const size_t lane = lanes.try_emplace(alloc.stream, lanes.size()).first->second;
    fmt::format_to(out, "{},{},{},{},{},{}\n", static_cast<uint64_t>(alloc.id), block.alloc.count(),
                   block.free.count(), alloc.bytes.count(), std::max(alloc.alignment, Bytes(1)).count(),
                   lane);
  }
  return csv;
}

std::string ToLifetimeCsv(const std::vector<Lifetime>& lifetimes) {
  std::string csv = "id,lower,upper,size,alignment,offset,gaps,lane\n";
  const auto out = std::back_inserter(csv);
  for (const Lifetime& l : lifetimes) {
    fmt::format_to(out, "{},{},{},{},{},", l.id, l.lower.count(), l.upper.count(), l.size.count(),
                   l.alignment.count());
    if (l.offset) fmt::format_to(out, "{}", l.offset->count());
    csv += ',';
    for (const Lifetime::Gap& gap : l.gaps) {
      fmt::format_to(out, "{}{}-{}", &gap == l.gaps.data() ? "" : " ", gap.lower.count(), gap.upper.count());
    }
    fmt::format_to(out, ",{}\n", l.lane);
  }
  return csv;
}

}  // namespace reprise::profiler
