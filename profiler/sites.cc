#include "profiler/sites.h"

#include <fmt/format.h>

#include <string_view>

namespace reprise::profiler {
namespace {

std::string_view LastPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool IsOwn(const Frame& frame) {
  const std::string_view file = frame.file;
  const auto has = [&](std::string_view part) { return file.find(part) != std::string_view::npos; };
  return frame.kind == FrameKind::kPython && !has("/site-packages/") && !has("/dist-packages/") &&
         !has("/lib/python3") && !has("/torch/") && !file.starts_with("<frozen");
}

Site SiteOfFrame(const Frame& frame) {
  Site site{.file = frame.file, .line = frame.line, .function = frame.function, .library = frame.module};
  if (frame.kind == FrameKind::kPython) {
    site.label = fmt::format("{}:{} {}", LastPart(frame.file), frame.line, frame.function);
  } else if (!frame.function.empty()) {
    site.label = frame.function;
  } else {
    site.label = fmt::format("{}+{:#x}", LastPart(frame.module), frame.address);
  }
  return site;
}

}  // namespace

Site SiteOf(const StackTable& stacks, StackId stack) {
  const Frame* python = nullptr;
  for (const FrameId id : stacks.stack(stack)) {
    const Frame& frame = stacks.frame(id);
    if (IsOwn(frame)) return SiteOfFrame(frame);
    if (python == nullptr && frame.kind == FrameKind::kPython) python = &frame;
  }
  if (python != nullptr) return SiteOfFrame(*python);
  if (stacks.stack(stack).empty()) return {.label = "(no stack)"};
  return SiteOfFrame(stacks.frame(stacks.stack(stack)[0]));
}

}  // namespace reprise::profiler
