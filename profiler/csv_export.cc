#include "profiler/csv_export.h"

#include <fmt/format.h>

#include <iterator>

namespace reprise::profiler {

std::string ToEventCsv(const std::vector<Event>& events) {
  std::string csv = "event,id,bytes,stream\n";
  const auto out = std::back_inserter(csv);
  for (const Event& event : events) {
    const uint64_t id = static_cast<uint64_t>(event.id), stream = static_cast<uint64_t>(event.stream);
    switch (event.kind) {
      case EventKind::kAlloc:
        fmt::format_to(out, "alloc,{},{},{}\n", id, event.bytes.count(), stream);
        break;
      case EventKind::kFree:
        fmt::format_to(out, "free,{},,{}\n", id, stream);
        break;
      case EventKind::kMark:
        fmt::format_to(out, "mark,{},,\n", id);
        break;
    }
  }
  return csv;
}

}  // namespace reprise::profiler
