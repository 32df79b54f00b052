#include "replay/models/bfc_arena.h"

#include <algorithm>

namespace reprise::replay {
namespace {

constexpr Bytes kUnit{256};
constexpr Bytes kStep{kMiB * 2};
constexpr Bytes kMostWaste{kMiB * 128};
constexpr Bytes kWithoutLimit{int64_t{1} << 61};  // sums of two stay in range

}  // namespace

BfcArena::BfcArena(Bytes capacity, Split split)
    : split_(split), range_(capacity > Bytes(0) ? kUnit * (capacity / kUnit) : kWithoutLimit) {
  if (range_ > Bytes(0)) free_.insert(&blocks_.Add({.address = Offset(0), .size = range_}));
}

std::optional<Offset> BfcArena::Allocate(Bytes bytes, Stream) {
  const Bytes size = RoundUp(bytes, kUnit);
  const auto it = BestFit(free_, size, Stream{0});
  if (it == free_.end()) return std::nullopt;
  Block* const block = *it;
  free_.erase(it);
  if (ShouldSplit(*block, size)) free_.insert(&blocks_.Split(*block, size));
  block->allocated = true;
  allocated_ += block->size;
  const Bytes end = block->address + block->size - Offset(0);
  reserved_ = std::max(reserved_, std::min(range_, RoundUp(end, kStep)));
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
