#include "cli/report/redact.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "profiler/sites.h"

namespace reprise::cli {
namespace {

// A path's stand-in must be the job's own code exactly if the path is: sites are chosen by that.
std::string StandIn(const profiler::Frame& frame, StandIns& files) {
  if (frame.file.empty()) return "";
  const bool python = frame.kind == profiler::FrameKind::kPython;
  const bool installed = python && !profiler::IsOwnCode(frame.file);
  return fmt::format("{}{}{}", installed ? "/site-packages/" : "", files.Of(frame.file), python ? ".py" : "");
}

// What Reprise itself says instead of a function stays, and how a library's functions begin, by which sites
// are chosen; a thread's name does not.
std::string StandInForFunction(const std::string& function, StandIns& functions) {
  if (function == profiler::kBackwardFrame) return function;
  if (function.starts_with(profiler::kThreadFrame)) {
    return fmt::format("{}{}>", profiler::kThreadFrame, functions.Of(function));
  }
  return fmt::format("{}{}", profiler::KnownPrefix(function), functions.Of(function));
}

// How the names of libraries begin that everybody has, by which sites are chosen too. The rest may be the job's
// own: libtorch_NAME.so.
std::string StandInForModule(const std::string& module, StandIns& libraries) {
  const std::string_view known = profiler::KnownLibraryPrefix(module);
  return fmt::format("{}{}{}", known, known.empty() ? "" : "-",
                     libraries.Of(module.substr(module.rfind('/') + 1)));
}

}  // namespace

std::string StandIns::Of(const std::string& text) {
  if (text.empty()) return "";
  const size_t number = numbers_.try_emplace(text, numbers_.size() + 1).first->second;
  return fmt::format("{}-{}", what_, number);
}

void Redactor::Redact(profiler::Trace& trace) {
  profiler::StackTable redacted;
  std::vector<profiler::FrameId> frame_of{profiler::FrameId(0)};
  for (uint32_t i = 1; i <= trace.stacks.frames(); ++i) {
    profiler::Frame frame = trace.stacks.frame(profiler::FrameId(i));
    frame.file = StandIn(frame, files_);
    frame.function = StandInForFunction(frame.function, functions_);
    frame.module = StandInForModule(frame.module, libraries_);
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
  for (profiler::Activity& activity : trace.activities) {
    activity.name = frame_of[static_cast<size_t>(activity.name)];
  }
  trace.stacks = std::move(redacted);
  trace.metadata.command.clear();
  trace.metadata.host.clear();
  trace.metadata.run.clear();
  trace.metadata.job.clear();
  trace.metadata.step.clear();
  trace.metadata.pid = 0;
}

void Redact(LoadedInput& input) {
  Redactor().Redact(input.content.trace);
  for (size_t i = 0; i < input.content.lifetimes.size(); ++i) {
    input.content.lifetimes[i].id = fmt::format("{}", i);
  }
  input.name = "input";
}

}  // namespace reprise::cli
