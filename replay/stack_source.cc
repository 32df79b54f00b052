#include "replay/stack_source.h"

#include "replay/native_stacks.h"
#include "replay/python_stacks.h"

namespace reprise::replay {
namespace {

thread_local int inside = 0;
thread_local profiler::StackId last_taken{};

}  // namespace

int& StackSource::Inside() { return inside; }

profiler::StackId StackSource::taken() { return last_taken; }

StackSource::StackSource(Stacks kind, int* (*depth)()) : depth_(depth) {
  if (kind == Stacks::kPython) taker_ = PythonStacks::Begin(*this);
  if (kind == Stacks::kNative) taker_ = NativeStacks::Begin(*this);
}

StackSource::~StackSource() = default;

void StackSource::Take() noexcept {
  last_taken = profiler::StackId(0);
  if (taker_ != nullptr) Guarded([this] { last_taken = taker_->Take(); });
}

}  // namespace reprise::replay
