// A StackTable that a job's threads add to while a recorder's thread writes it into a trace.
#pragma once

#include <mutex>
#include <span>
#include <utility>

#include "profiler/stacks.h"

namespace reprise::profiler {

// Bounds on what one trace keeps, and on what a reader takes: a job that makes code as it goes must not grow
// the table for ever, nor a file the reader.
inline constexpr size_t kMostFrames = size_t{1} << 17;
inline constexpr size_t kMostStacks = size_t{1} << 18;
inline constexpr size_t kMostStackDepth = 64;  // frames of one stack; the outermost are left out
inline constexpr size_t kMostModules = size_t{1} << 14;
inline constexpr size_t kMostStackText = size_t{1} << 12;  // bytes of a name; the rest is cut off

// Thread-safe. The lock is held for one look-up, or while some 64 KiB are encoded; nothing else is taken
// under it. Not to be touched in a fork's child, which may have inherited the lock taken.
class SharedStacks {
 public:
  // 0 where the table is full.
  FrameId Intern(Frame frame);
  // At most kMostStackDepth frames, each of this table. 0: full, or no frames.
  StackId Intern(std::span<const FrameId> frames);
  void AddModule(Module module);

  template <typename Visit>
  auto Read(Visit visit) {
    const std::lock_guard lock(mutex_);
    return visit(std::as_const(table_));
  }

 private:
  std::mutex mutex_;
  StackTable table_;
};

}  // namespace reprise::profiler
