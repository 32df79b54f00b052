#include "replay/models/bfc_arena.h"

#include <algorithm>

namespace reprise::replay {
namespace {

constexpr Bytes kBfcUnit{256};
constexpr Bytes kWithoutLimit{int64_t{1} << 61};  // sums of two stay in range

}  // namespace

BfcArena::BfcArena(Bytes capacity, Kind kind)
    : kind_(kind), most_(capacity > Bytes(0) ? kBfcUnit * (capacity / kBfcUnit) : kWithoutLimit) {
  if (kind_ == Kind::kXla && most_ > Bytes(0))
    free_.insert(&blocks_.Add({.address = Offset(0), .size = most_}));
}

std::optional<Offset> BfcArena::Allocate(Bytes bytes, Stream) {
  const Bytes size = RoundUp(bytes, kBfcUnit);
  Block* block = nullptr;
  if (const auto it = BestFit(free_, size, Stream{0}); it != free_.end()) {
    block = *it;
    free_.erase(it);
  } else if (kind_ == Kind::kPlain) {
    block = Grow(size);
  }
  if (block == nullptr) return std::nullopt;
  if (ShouldSplit(*block, size)) free_.insert(&blocks_.Split(*block, size));
  block->allocated = true;
  allocated_ += block->size;
  const Bytes end = block->address + block->size - Offset(0);
  reserved_ = std::max(reserved_, std::min(most_, RoundUp(end, kStep)));
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
  if (kind_ == Kind::kPlain) return block.size > size;
  return block.size >= size * 2 || block.size - size >= kMostWaste;
}

// The free block at the end, made large enough. nullptr: out of memory.
Block* BfcArena::Grow(Bytes size) {
  Block* const last = blocks_.Last();
  const bool extends = last != nullptr && !last->allocated;
  const Bytes begin =
      last == nullptr ? Bytes(0) : (extends ? last->address : last->address + last->size) - Offset(0);
  const Bytes end = RoundUp(begin + size, kStep);
  if (end > most_) return nullptr;
  if (!extends) return &blocks_.Add({.address = Offset(0) + begin, .size = end - begin});
  free_.erase(last);
  last->size = end - begin;
  return last;
}

// A block, which is in no set, together with its free neighbours.
Block& BfcArena::Joined(Block& block) {
  if (Block* const after = blocks_.After(block); after != nullptr && !after->allocated) {
    free_.erase(after);
    blocks_.MergeAfter(block);
  }
  Block* const before = blocks_.Before(block);
  if (before == nullptr || before->allocated) return block;
  free_.erase(before);
  blocks_.MergeAfter(*before);
  return *before;
}

}  // namespace reprise::replay
