// Call stacks, each kept once: where in the job's code an allocation was asked for.
//
// Glossary
//   frame   one line of a stack: a function, and where it stands
//   stack   frames, innermost first
//   site    the frame that a person would name for an allocation: the first of its stack in code that is the
//           job's own (sites.h)
//   module  a library or executable that native frames stand in; its build id tells whether a file is still
//   it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "profiler/types.h"

namespace reprise::profiler {

// Names a frame of a StackTable. 0: none.
enum class FrameId : uint32_t {};

// kDevice: no line of a stack but the name of something that a device did (activities.h), in `function`.
enum class FrameKind : uint8_t { kNative = 0, kPython = 1, kDevice = 2 };

// What is not known is empty or 0.
struct Frame {
  FrameKind kind = FrameKind::kNative;
  std::string function{};
  std::string file{};    // of source code
  int64_t line = 0;      // in `file`, from 1
  std::string module{};  // native: the path of the library or executable
  uint64_t address = 0;  // native: within `module`, of the instruction that called
  friend bool operator==(const Frame&, const Frame&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Frame& f) {
    return H::combine(std::move(hash), f.kind, f.function, f.file, f.line, f.module, f.address);
  }
};

struct Module {
  std::string path{};
  std::string build_id{};  // hexadecimal, lower case; empty: it has none
  friend bool operator==(const Module&, const Module&) = default;
};

// Bytes of the names of all frames of a table. A file tells a name once and any number of frames by it, and
// each frame has a copy.
inline constexpr size_t kMostFrameText = size_t{1} << 26;

// Gives equal frames and equal stacks one number each, rising from 1 in order of appearance. Memory linear in
// the frames of the distinct stacks.
class StackTable {
 public:
  // 0: new, and its names are more than the table may have.
  FrameId Intern(const Frame& frame);
  // Frames innermost first, each of this table; a 0 among them, for which there was no room, is left out. No
  // frames: StackId 0.
  StackId Intern(std::span<const FrameId> frames);

  size_t frames() const { return frames_.size(); }
  size_t stacks() const { return begins_.size() - 1; }
  const Frame& frame(FrameId id) const { return frames_[static_cast<size_t>(id) - 1]; }
  // Innermost first; empty for 0. Valid until the next Intern.
  std::span<const FrameId> stack(StackId id) const;
  bool has(FrameId id) const { return id != FrameId(0) && static_cast<size_t>(id) <= frames(); }
  bool has(StackId id) const { return static_cast<size_t>(id) <= stacks(); }

  // Of the frames' modules those that were looked at; in no order that matters.
  const std::vector<Module>& modules() const { return modules_; }
  // Says what a native frame is, once its module has been looked into. It keeps its number, and is found by
  // Intern as it was before.
  void Describe(FrameId id, std::string function, std::string file, int64_t line) {
    Frame& frame = frames_[static_cast<size_t>(id) - 1];
    frame.function = std::move(function);
    frame.file = std::move(file);
    frame.line = line;
  }
  void AddModule(Module module) { modules_.push_back(std::move(module)); }

 private:
  std::vector<Frame> frames_;
  size_t frame_text_ = 0;  // bytes of their names as they were interned
  HashMap<Frame, FrameId> frame_ids_;
  std::vector<FrameId> stacks_;                        // all stacks one after another
  std::vector<size_t> begins_{0};                      // of each, and the end of the last
  HashMap<uint64_t, std::vector<StackId>> stack_ids_;  // by hash of the frames
  std::vector<Module> modules_;
};

}  // namespace reprise::profiler
