#include "replay/models/driver_pool.h"

namespace reprise::replay {
namespace {

constexpr Bytes kPoolUnit{512};

}  // namespace

std::optional<Offset> DriverPool::Allocate(Bytes bytes, Stream) {
  const Bytes size = RoundUp(bytes, kPoolUnit);
  Block* block = TakeFree(size);
  if (block == nullptr) block = NewChunk(size);
  if (block == nullptr) {
    ReleaseChunks();
    block = NewChunk(size);
  }
  if (block == nullptr) return std::nullopt;
  if (block->size > size) free_.insert(&blocks_.Split(*block, size));
  block->allocated = true;
  allocated_ += block->size;
  return block->address;
}

bool DriverPool::Free(Offset offset, Stream) {
  Block* const block = blocks_.At(offset);
  if (block == nullptr || !block->allocated) return false;
  allocated_ -= block->size;
  block->allocated = false;
  Cache(*block);
  return true;
}

Block* DriverPool::TakeFree(Bytes size) {
  const auto it = BestFit(free_, size, Stream{0});
  if (it == free_.end()) return nullptr;
  Block* const block = *it;
  free_.erase(it);
  return block;
}

Block* DriverPool::NewChunk(Bytes size) {
  const Bytes bytes = RoundUp(size, kChunk);
  const std::optional<Offset> address = driver_.Take(bytes);
  if (!address) return nullptr;
  return &blocks_.Add({.address = *address, .size = bytes, .segment = chunks_++});
}

void DriverPool::Cache(Block& block) {
  Block* merged = &block;
  if (Block* const after = blocks_.After(block); after != nullptr && !after->allocated) {
    free_.erase(after);
    blocks_.MergeAfter(block);
  }
  if (Block* const before = blocks_.Before(block); before != nullptr && !before->allocated) {
    free_.erase(before);
    blocks_.MergeAfter(*before);
    merged = before;
  }
  free_.insert(merged);
}

void DriverPool::ReleaseChunks() {
  for (auto it = free_.begin(); it != free_.end();) {
    Block& block = **it;
    if (!blocks_.IsWholeSegment(block)) {
      ++it;
      continue;
    }
    it = free_.erase(it);
    driver_.GiveBack(block.size);
    blocks_.Remove(block);
  }
}

}  // namespace reprise::replay
