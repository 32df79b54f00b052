#include "replay/stacks/stack_source.h"

#include <chrono>
#include <thread>

#include "replay/stacks/native_stacks.h"
#include "replay/stacks/python_stacks.h"

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

// Not for ever: who takes a stack may wait for a lock that the job holds as it forks.
void StackSource::BeforeFork() noexcept {
  constexpr std::chrono::seconds kPatience{1};
  forks_.fetch_add(1);
  const int itself =
      inside != 0 ? 1 : 0;  // a signal handler that forks may have interrupted this very thread
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (taking_.load() > itself && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

void StackSource::Take() noexcept {
  last_taken = profiler::StackId(0);
  if (taker_ != nullptr) Guarded([this] { last_taken = taker_->Take(); });
}

}  // namespace reprise::replay
