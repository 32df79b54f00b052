#include "replay/models/torch_expandable.h"

#include <algorithm>
#include <vector>

#include "replay/models/torch_sizes.h"

namespace reprise::replay {
namespace {

constexpr Bytes kSmallPiece = kTorchSmallSegment;
constexpr Bytes kLargePiece = kTorchSharedSegment;
// Of addresses, for a segment: a multiple of both pieces, so that every piece begins at a multiple of its
// size.
constexpr Bytes kSegmentSpace = kLargePiece * (int64_t{1} << 16);

Bytes PieceOf(const Block& block) { return block.small ? kSmallPiece : kLargePiece; }

}  // namespace

std::optional<Offset> TorchExpandable::Allocate(Bytes bytes, Stream stream) {
  const Bytes size = TorchRounded(bytes);
  Block* block = TakeCached(size, stream);
  if (block == nullptr) block = Grow(size, stream);
  if (block == nullptr) {
    ReleaseCached();
    block = Grow(size, stream);
  }
  if (block == nullptr) return std::nullopt;
  if (block->size - size >= kTorchUnit) PoolOf(*block).free.insert(&blocks_.Split(*block, size));
  block->allocated = true;
  allocated_ += block->size;
  return block->address;
}

bool TorchExpandable::Free(Offset offset, Stream) {
  Block* const block = blocks_.At(offset);
  if (block == nullptr || !block->allocated) return false;
  block->allocated = false;
  allocated_ -= block->size;
  PoolOf(*block).free.insert(&MergeFree(*block));
  return true;
}

// The best fit, or rather one behind it as long as that could grow to less.
Block* TorchExpandable::TakeCached(Bytes size, Stream stream) {
  FreeBySize& free = pools_[TorchIsSmall(size) ? 0 : 1].free;
  auto it = BestFit(free, size, stream);
  if (it == free.end()) return nullptr;
  for (auto next = std::next(it); next != free.end() && (*next)->stream == stream; it = next++) {
    if (RoomOf(**next) >= RoomOf(**it)) break;
  }
  Block* const block = *it;
  free.erase(it);
  return block;
}

Bytes TorchExpandable::RoomOf(const Block& block) {
  const Block* const after = blocks_.After(block);
  return after != nullptr && !after->mapped ? block.size + after->size : block.size;
}

Block* TorchExpandable::Grow(Bytes size, Stream stream) {
  Block* block = FindRoom(size, stream);
  if (block == nullptr) return nullptr;
  if (!block->mapped) block = Map(*block, std::min(block->size, size));
  while (block != nullptr && block->size < size) {
    Block* const after = blocks_.After(*block);
    block = Map(*after, std::min(after->size, size - block->size));
  }
  if (block != nullptr) PoolOf(*block).free.erase(block);
  return block;
}

// The lowest addresses at which free and unmapped blocks in a row make `size` bytes, at least one of them
// unmapped.
Block* TorchExpandable::FindRoom(Bytes size, Stream stream) {
  const bool small = TorchIsSmall(size);
  FreeByAddress& unmapped = pools_[small ? 0 : 1].unmapped;
  Block key{.address = Offset(0), .stream = stream};
  for (auto it = unmapped.lower_bound(&key); it != unmapped.end() && (*it)->stream == stream; ++it) {
    Block* first = *it;
    if (Block* const before = blocks_.Before(*first); before != nullptr && !before->allocated) first = before;
    Bytes room;
    for (const Block* b = first; b != nullptr && !b->allocated && room < size; b = blocks_.After(*b))
      room += b->size;
    if (room >= size) return first;
  }
  if (size > kSegmentSpace) return nullptr;
  const std::optional<Offset> address = driver_.Reserve(kSegmentSpace);
  if (!address) return nullptr;
  Block& segment = blocks_.Add({.address = *address,
                                .size = kSegmentSpace,
                                .stream = stream,
                                .segment = segments_++,
                                .small = small,
                                .mapped = false});
  unmapped.insert(&segment);
  return &segment;
}

// Maps the first `bytes` of an unmapped block. The free block that they are part of then, or nullptr: out of
// memory.
Block* TorchExpandable::Map(Block& block, Bytes bytes) {
  const Bytes mapped = RoundUp(bytes, PieceOf(block));
  if (!driver_.Commit(mapped)) return nullptr;
  Pool& pool = PoolOf(block);
  pool.unmapped.erase(&block);
  if (mapped < block.size) pool.unmapped.insert(&blocks_.Split(block, mapped));
  block.mapped = true;
  Block& merged = MergeFree(block);
  pool.free.insert(&merged);
  return &merged;
}

// Gives back the whole pieces within a free block; what is left of it at either end stays free.
void TorchExpandable::Unmap(Block& block) {
  const Bytes piece = PieceOf(block);
  const Offset begin = RoundUp(block.address, piece);
  const Offset block_end = block.address + block.size;
  const Offset end = block_end - (block_end - Offset(0)) % piece;
  if (begin >= end) return;
  Pool& pool = PoolOf(block);
  pool.free.erase(&block);
  Block* middle = &block;
  if (begin > block.address) {
    middle = &blocks_.Split(block, begin - block.address);
    pool.free.insert(&block);
  }
  if (end < block_end) pool.free.insert(&blocks_.Split(*middle, end - begin));
  driver_.GiveBack(end - begin);
  middle->mapped = false;
  pool.unmapped.insert(&MergeUnmapped(*middle));
}

void TorchExpandable::ReleaseCached() {
  for (Pool& pool : pools_) {
    const std::vector<Block*> free(pool.free.begin(), pool.free.end());
    for (Block* block : free) Unmap(*block);
  }
}

// Joins a block, which is in no set, with its neighbours that are free and mapped.
Block& TorchExpandable::MergeFree(Block& block) {
  FreeBySize& free = PoolOf(block).free;
  Block* merged = &block;
  if (Block* before = blocks_.Before(block); before != nullptr && !before->allocated && before->mapped) {
    free.erase(before);
    blocks_.MergeAfter(*before);
    merged = before;
  }
  if (Block* after = blocks_.After(*merged); after != nullptr && !after->allocated && after->mapped) {
    free.erase(after);
    blocks_.MergeAfter(*merged);
  }
  return *merged;
}

// The same for one that is not mapped.
Block& TorchExpandable::MergeUnmapped(Block& block) {
  FreeByAddress& unmapped = PoolOf(block).unmapped;
  Block* merged = &block;
  if (Block* before = blocks_.Before(block); before != nullptr && !before->mapped) {
    unmapped.erase(before);
    blocks_.MergeAfter(*before);
    merged = before;
  }
  if (Block* after = blocks_.After(*merged); after != nullptr && !after->mapped) {
    unmapped.erase(after);
    blocks_.MergeAfter(*merged);
  }
  return *merged;
}

}  // namespace reprise::replay
