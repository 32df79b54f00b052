#include "profiler/snapshot_frames.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/shared_stacks.h"
#include "profiler/sites.h"

namespace reprise::profiler {
namespace {

constexpr size_t kMostFrameKeys = 64;  // a frame has about five

std::string TextOf(const std::optional<PickleValue>& value) {
  return value ? std::string(value->string().value_or("").substr(0, kMostStackText)) : "";
}

// A snapshot does not say of which kind a frame is. C++ frames have no line, or a source file of C or C++; what has
// neither and is no code either, a recorder has said in place of Python's.
FrameKind KindOf(const Frame& frame) {
  static constexpr std::string_view kNativeEndings[] = {".c",   ".cc", ".cpp", ".cxx", ".cu",
                                                        ".cuh", ".h",  ".hpp", ".inc", ".S"};
  if (frame.function == kBackwardFrame || frame.function.starts_with(kThreadFrame)) return FrameKind::kPython;
  if (!frame.module.empty() || frame.file.empty() || frame.file == "??" || frame.line <= 0)
    return FrameKind::kNative;
  const auto ends = [&](std::string_view ending) { return frame.file.ends_with(ending); };
  return std::ranges::any_of(kNativeEndings, ends) ? FrameKind::kNative : FrameKind::kPython;
}

}  // namespace

StackId SnapshotFrames::Read(PickleValue frames) {
  if (!frames.is_sequence()) return StackId(0);
  const auto [it, unseen] = lists_.try_emplace(frames.identity());
  if (!unseen) return it->second;
  frames_.clear();
  for (size_t i = 0; i < frames.size(); ++i) frames_.push_back(ReadFrame(frames[i]));
  return it->second = table_.Intern(frames_);
}

FrameId SnapshotFrames::ReadFrame(PickleValue dict) {
  if (dict.kind() != Pickle::Kind::kDict || dict.size() > kMostFrameKeys) return FrameId(0);
  const auto [it, unseen] = dicts_.try_emplace(dict.identity());
  if (!unseen) return it->second;
  const std::optional<PickleValue> name = dict.Find("name"), file = dict.Find("filename"),
                                   line = dict.Find("line"), address = dict.Find("address");
  Frame frame;
  frame.function = TextOf(name);
  frame.module = TextOf(dict.Find("module"));
  if (address) frame.address = static_cast<uint64_t>(address->integer().value_or(0));
  frame.file = TextOf(file);
  if (line) frame.line = std::max<int64_t>(0, line->integer().value_or(0));
  frame.kind = KindOf(frame);
  if (frame.file == "??") frame.file.clear();
  if (frame.function.empty() && frame.file.empty() && frame.module.empty()) return FrameId(0);
  return it->second = table_.Intern(frame);
}

}  // namespace reprise::profiler
