#include "replay/models/bfc_arena.h"

namespace reprise::replay {
namespace {

constexpr Bytes kUnit{256};
constexpr Bytes kStep{kMiB * 2};
constexpr Bytes kMostWaste{kMiB * 128};

}  // namespace

std::optional<Offset> BfcArena::Allocate(Bytes bytes, Stream) {
  const Bytes size = RoundUp(bytes, kUnit);
  Block* block = nullptr;
  if (const auto it = BestFit(free_, size, Stream{0}); it != free_.end()) {
    block = *it;
    free_.erase(it);
  } else {
    block = Grow(size);
  }
  if (block == nullptr) return std::nullopt;
  if (ShouldSplit(*block, size)) {
    Block& rest = blocks_.Split(*block, size);
    if (last_ == block->address) last_ = rest.address;
    free_.insert(&rest);
  }
  block->allocated = true;
  allocated_ += block->size;
  return block->address;
}

bool BfcArena::Free(Offset offset, Stream) {
  Block* const block = blocks_.At(offset);
  if (block == nullptr || !block->allocated) return false;
  allocated_ -= block->size;
  block->allocated = false;
  free_.insert(&Joined(*block));
  return true;
}

bool BfcArena::ShouldSplit(const Block& block, Bytes size) const {
  if (split_ == Split::kAlways) return block.size > size;
  return block.size >= size * 2 || block.size - size >= kMostWaste;
}

// The free block at the end, made large enough. nullptr: out of memory.
Block* BfcArena::Grow(Bytes size) {
  Block* const last = blocks_.At(last_);
  const bool extends = last != nullptr && !last->allocated;
  const Bytes missing = RoundUp(extends ? size - last->size : size, kStep);
  const std::optional<Offset> address = driver_.Take(missing);  // behind what was taken before
  if (!address) return nullptr;
  if (extends) {
    free_.erase(last);
    last->size += missing;
    return last;
  }
  last_ = *address;
  return &blocks_.Add({.address = *address, .size = missing});
}

// A block, which is in no set, together with its free neighbours.
Block& BfcArena::Joined(Block& block) {
  Block* merged = &block;
  if (Block* const after = blocks_.After(block); after != nullptr && !after->allocated) {
    if (last_ == after->address) last_ = block.address;
    free_.erase(after);
    blocks_.MergeAfter(block);
  }
  if (Block* const before = blocks_.Before(block); before != nullptr && !before->allocated) {
    if (last_ == block.address) last_ = before->address;
    free_.erase(before);
    blocks_.MergeAfter(*before);
    merged = before;
  }
  return *merged;
}

}  // namespace reprise::replay
