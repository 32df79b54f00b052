#include "profiler/stacks.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/types/span.h"

namespace reprise::profiler {

FrameId StackTable::Intern(const Frame& frame) {
  const auto [it, added] = frame_ids_.try_emplace(frame, FrameId(static_cast<uint32_t>(frames_.size() + 1)));
  if (added) frames_.push_back(frame);
  return it->second;
}

StackId StackTable::Intern(std::span<const FrameId> frames) {
  if (frames.empty()) return StackId(0);
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
