#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "profiler/exports.h"

namespace reprise::profiler {
namespace {

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string ToJson(const std::vector<Event>& events, const StackTable& stacks) {
  std::string json = R"({"format":"reprise-events","version":1,)"
                     R"("columns":["kind","id","bytes","stream","time_ns","stack"],"events":[)";
  const auto out = std::back_inserter(json);
  static constexpr std::string_view kKinds[] = {"alloc", "free", "mark"};
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
                   i == 1 ? "" : ",", f.kind == FrameKind::kPython ? "python" : "native", Quoted(f.function),
                   Quoted(f.file), f.line, Quoted(f.module));
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
  return json += "]}\n";
}

}  // namespace reprise::profiler
