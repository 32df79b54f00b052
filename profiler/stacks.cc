#include "profiler/stacks.h"

#include <algorithm>
#include <iterator>

#include "absl/hash/hash.h"
#include "absl/types/span.h"

namespace reprise::profiler {

FrameId StackTable::Intern(const Frame& frame) {
  if (const auto it = frame_ids_.find(frame); it != frame_ids_.end()) return it->second;
  const size_t text = frame.function.size() + frame.file.size() + frame.module.size();
  if (text > kMostFrameText - frame_text_) return FrameId(0);
  frame_text_ += text;
  frames_.push_back(frame);
  return frame_ids_[frame] = FrameId(static_cast<uint32_t>(frames_.size()));
}

StackId StackTable::Intern(std::span<const FrameId> frames) {
  if (frames.empty()) return StackId(0);
  if (std::ranges::find(frames, FrameId(0)) != frames.end()) {
    std::vector<FrameId> kept;
    std::ranges::remove_copy(frames, std::back_inserter(kept), FrameId(0));
    return Intern(kept);
  }
  std::vector<StackId>& same_hash =
      stack_ids_[absl::HashOf(absl::Span<const FrameId>(frames.data(), frames.size()))];
  for (const StackId id : same_hash) {
    if (std::ranges::equal(stack(id), frames)) return id;
  }
  stacks_.insert(stacks_.end(), frames.begin(), frames.end());
  begins_.push_back(stacks_.size());
  return same_hash.emplace_back(StackId(static_cast<uint32_t>(stacks())));
}

std::span<const FrameId> StackTable::stack(StackId id) const {
  if (id == StackId(0)) return {};
  const size_t begin = begins_[static_cast<size_t>(id) - 1];
  return std::span(stacks_).subspan(begin, begins_[static_cast<size_t>(id)] - begin);
}

}  // namespace reprise::profiler
