#include "cli/report/redact.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {
namespace {

// Gives equal texts one name each.
class Names {
 public:
  explicit Names(std::string_view what) : what_(what) {}
  std::string Of(const std::string& text) {
    if (text.empty()) return "";
    const size_t number = numbers_.try_emplace(text, numbers_.size() + 1).first->second;
    return fmt::format("{}-{}", what_, number);
  }

 private:
  std::string_view what_;
  std::map<std::string, size_t> numbers_;
};

// What of a path may stay: that it is an installed package's, the standard library's, or the interpreter's
// own.
std::string_view KeptPrefix(std::string_view path) {
  static constexpr std::string_view kKept[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
                                               "/torch/"};
  static constexpr std::string_view kStandIn[] = {"/site-packages/", "/dist-packages/", "/lib/python3/",
                                                  "/torch/"};
  for (size_t i = 0; i < std::size(kKept); ++i) {
    if (path.find(kKept[i]) != std::string_view::npos) return kStandIn[i];
  }
  return path.starts_with("<frozen") ? "<frozen " : "";
}

}  // namespace

void Redact(LoadedInput& input) {
  profiler::Trace& trace = input.content.trace;
  Names files("file"), functions("function"), libraries("library");
  profiler::StackTable redacted;
  std::vector<profiler::FrameId> frame_of{profiler::FrameId(0)};
  for (uint32_t i = 1; i <= trace.stacks.frames(); ++i) {
    profiler::Frame frame = trace.stacks.frame(profiler::FrameId(i));
    const std::string_view prefix = KeptPrefix(frame.file);
    const bool python = frame.kind == profiler::FrameKind::kPython;
    if (!frame.file.empty())
      frame.file = fmt::format("{}{}{}", prefix, files.Of(frame.file), python ? ".py" : "");
    frame.function = functions.Of(frame.function);
    frame.module = libraries.Of(frame.module);
    frame_of.push_back(redacted.Intern(frame));
  }
  std::vector<profiler::StackId> stack_of{profiler::StackId(0)};
  std::vector<profiler::FrameId> frames;
  for (uint32_t i = 1; i <= trace.stacks.stacks(); ++i) {
    frames.clear();
    for (const profiler::FrameId id : trace.stacks.stack(profiler::StackId(i))) {
      frames.push_back(frame_of[static_cast<size_t>(id)]);
    }
    stack_of.push_back(redacted.Intern(frames));
  }
  for (profiler::Event& event : trace.events) event.stack = stack_of[static_cast<size_t>(event.stack)];
  trace.stacks = std::move(redacted);
  trace.metadata.command.clear();
  trace.metadata.host.clear();
  trace.metadata.pid = 0;
  trace.notes.clear();
  for (size_t i = 0; i < input.content.lifetimes.size(); ++i) {
    input.content.lifetimes[i].id = fmt::format("{}", i);
  }
  input.name = "input";
}

}  // namespace reprise::cli
