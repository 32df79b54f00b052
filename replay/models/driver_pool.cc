#include "replay/models/driver_pool.h"

#include <limits>
#include <vector>

namespace reprise::replay {
namespace {

constexpr Bytes kUnit{512};
constexpr Bytes kChunk{kMiB * 32};
// Of memory that every stream may use.
constexpr Stream kAnyStream{std::numeric_limits<uint64_t>::max()};

}  // namespace

std::optional<Offset> DriverPool::Allocate(Bytes bytes, Stream stream) {
  const Bytes size = RoundUp(bytes, kUnit);
  Block* block = TakeFree(size, stream);
  if (block == nullptr) block = NewChunk(size);
  if (block == nullptr) {
    Synchronize();
    block = TakeFree(size, stream);
  }
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

bool DriverPool::Free(Offset offset, Stream stream) {
  Block* const block = blocks_.At(offset);
  if (block == nullptr || !block->allocated) return false;
  allocated_ -= block->size;
  block->allocated = false;
  block->stream = stream;
  Cache(*block);
  return true;
}

Block* DriverPool::TakeFree(Bytes size, Stream stream) {
  auto it = BestFit(free_, size, stream);
  if (it == free_.end()) it = BestFit(free_, size, kAnyStream);
  if (it == free_.end()) return nullptr;
  Block* const block = *it;
  free_.erase(it);
  return block;
}

Block* DriverPool::NewChunk(Bytes size) {
  const Bytes bytes = RoundUp(size, kChunk);
  const std::optional<Offset> address = driver_.Take(bytes);
  if (!address) return nullptr;
  return &blocks_.Add({.address = *address, .size = bytes, .stream = kAnyStream, .segment = chunks_++});
}

void DriverPool::Cache(Block& block) {
  Block* merged = &block;
  const auto joins = [&](const Block* other) {
    return other != nullptr && !other->allocated && other->stream == block.stream;
  };
  if (Block* const after = blocks_.After(block); joins(after)) {
    free_.erase(after);
    blocks_.MergeAfter(block);
  }
  if (Block* const before = blocks_.Before(block); joins(before)) {
    free_.erase(before);
    blocks_.MergeAfter(*before);
    merged = before;
  }
  free_.insert(merged);
}

// All free memory becomes every stream's, and joins across streams.
void DriverPool::Synchronize() {
  std::vector<Offset> addresses;  // of blocks that one which has had its turn cannot swallow
  for (const Block* block : free_) {
    if (block->stream != kAnyStream) addresses.push_back(block->address);
  }
  for (const Offset address : addresses) {
    Block* const block = blocks_.At(address);
    free_.erase(block);
    block->stream = kAnyStream;
    Cache(*block);
  }
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
