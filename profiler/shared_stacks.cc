#include "profiler/shared_stacks.h"

namespace reprise::profiler {

FrameId SharedStacks::Intern(Frame frame) {
  for (std::string* text : {&frame.function, &frame.file, &frame.module}) {
    if (text->size() > kMostStackText) text->resize(kMostStackText);
  }
  const std::lock_guard lock(mutex_);
  return table_.frames() < kMostFrames ? table_.Intern(frame) : FrameId(0);
}

StackId SharedStacks::Intern(std::span<const FrameId> frames) {
  const std::lock_guard lock(mutex_);
  return table_.stacks() < kMostStacks ? table_.Intern(frames) : StackId(0);
}

void SharedStacks::AddModule(Module module) {
  if (module.path.size() > kMostStackText) module.path.resize(kMostStackText);
  if (module.build_id.size() > kMostStackText) module.build_id.resize(kMostStackText);
  const std::lock_guard lock(mutex_);
  if (table_.modules().size() < kMostModules) table_.AddModule(std::move(module));
}

}  // namespace reprise::profiler
