#include <fmt/format.h>

#include <iterator>

#include "base/json_writer.h"
#include "profiler/exports.h"

namespace reprise::profiler {
std::string ToJson(const std::vector<Event>& events, const StackTable& stacks,
                   const std::vector<Activity>& activities) {
  std::string json(kJsonExportHead);
  json += R"(,"version":1,"columns":["kind","id","bytes","stream","time_ns","stack"],"events":[)";
  const auto out = std::back_inserter(json);
  static constexpr std::string_view kKinds[] = {"alloc", "free", "mark"};
  static constexpr std::string_view kFrameKinds[] = {"native", "python", "device"};
  static constexpr std::string_view kActivities[] = {"kernel", "copy", "set", "marker"};
  const char* comma = "";
  for (const Event& e : events) {
    fmt::format_to(out, R"({}
["{}",{},{},{},{},{}])",
                   comma, kKinds[static_cast<size_t>(e.kind)], static_cast<uint64_t>(e.id), e.bytes.count(),
                   static_cast<uint64_t>(e.stream), e.time_ns, static_cast<uint32_t>(e.stack));
    comma = ",";
  }
  json += "],\n\"frames\":[";
  for (uint32_t i = 1; i <= stacks.frames(); ++i) {
    const Frame& f = stacks.frame(FrameId(i));
    fmt::format_to(out, "{}\n{{\"kind\":\"{}\",\"function\":{},\"file\":{},\"line\":{},\"module\":{}}}",
                   i == 1 ? "" : ",", kFrameKinds[static_cast<size_t>(f.kind)], JsonWriter::Text(f.function),
                   JsonWriter::Text(f.file), f.line, JsonWriter::Text(f.module));
  }
  json += "],\n\"stacks\":[[]";  // of stack 0, none
  for (uint32_t i = 1; i <= stacks.stacks(); ++i) {
    json += ",\n[";
    comma = "";
    for (const FrameId frame : stacks.stack(StackId(i))) {
      fmt::format_to(out, "{}{}", comma, static_cast<uint32_t>(frame));
      comma = ",";
    }
    json += ']';
  }
  json += ']';
  if (!activities.empty()) {
    json += ",\n\"activity_columns\":[\"kind\",\"track\",\"begin_ns\",\"duration_ns\",\"bytes\",\"frame\"],";
    json += "\"activities\":[";
    comma = "";
    for (const Activity& a : activities) {
      fmt::format_to(out, "{}\n[\"{}\",{},{},{},{},{}]", comma, kActivities[static_cast<size_t>(a.kind)],
                     a.track, a.begin_ns, a.duration_ns, a.bytes.count(), static_cast<uint32_t>(a.name));
      comma = ",";
    }
    json += ']';
  }
  return json += "}\n";
}

}  // namespace reprise::profiler
