#include "replay/models/torch_native.h"

#include "replay/models/torch_sizes.h"

namespace reprise::replay {

std::optional<Offset> TorchNative::Allocate(Bytes bytes, Stream stream) {
  const Bytes size = TorchRounded(bytes);
  Block* block = TakeCached(size, stream);
  if (block == nullptr) {
    block = NewSegment(size, stream);
    if (block == nullptr) {
      ReleaseCached();
      block = NewSegment(size, stream);
    }
    if (block == nullptr) return std::nullopt;
  }
  if (ShouldSplit(*block, size)) Cache(blocks_.Split(*block, size));
  block->allocated = true;
  allocated_ += block->size;
  return block->address;
}

bool TorchNative::Free(Offset offset, Stream) {
  Block* block = blocks_.At(offset);
  if (block == nullptr || !block->allocated) return false;
  block->allocated = false;
  allocated_ -= block->size;
  FreeBySize& free = PoolOf(block->small);
  if (Block* before = blocks_.Before(*block); before != nullptr && !before->allocated) {
    free.erase(before);
    blocks_.MergeAfter(*before);
    block = before;
  }
  if (Block* after = blocks_.After(*block); after != nullptr && !after->allocated) {
    free.erase(after);
    blocks_.MergeAfter(*block);
  }
  Cache(*block);
  return true;
}

void TorchNative::Cache(Block& block) {
  block.allocated = false;
  PoolOf(block.small).insert(&block);
}

Block* TorchNative::TakeCached(Bytes size, Stream stream) {
  FreeBySize& free = PoolOf(TorchIsSmall(size));
  const auto it = BestFit(free, size, stream);
  return it == free.end() ? nullptr : free.extract(it).value();
}

Block* TorchNative::NewSegment(Bytes size, Stream stream) {
  const Bytes segment = TorchSegmentSize(size);
  const std::optional<Offset> address = driver_.Take(segment);
  if (!address) return nullptr;
  return &blocks_.Add({.address = *address,
                       .size = segment,
                       .stream = stream,
                       .segment = segments_++,
                       .small = TorchIsSmall(size)});
}

bool TorchNative::ShouldSplit(const Block& block, Bytes size) {
  const Bytes rest = block.size - size;
  return block.small ? rest >= kTorchUnit : rest > kTorchMostSmall;
}

void TorchNative::ReleaseSegment(Block& block) {
  PoolOf(block.small).erase(&block);
  driver_.GiveBack(block.size);
  blocks_.Remove(block);
}

void TorchNative::ReleaseCached() {
  for (FreeBySize& free : pools_) {
    for (auto it = free.begin(); it != free.end();) {
      Block& block = **it++;
      if (blocks_.IsWholeSegment(block)) ReleaseSegment(block);
    }
  }
}

void TorchNative::AdoptSegment(Offset address, Bytes size, Stream stream, const std::vector<Placed>& live) {
  const Offset end = address + size;
  driver_.Adopt(end, size);
  Block* rest = &blocks_.Add({.address = address,
                              .size = size,
                              .stream = stream,
                              .segment = segments_++,
                              .small = size == kTorchSmallSegment});
  for (const Placed& placed : live) {
    Block* block = rest;
    if (placed.address > rest->address) {
      block = &blocks_.Split(*rest, placed.address - rest->address);
      Cache(*rest);
    }
    rest = placed.address + placed.size < end ? &blocks_.Split(*block, placed.size) : nullptr;
    block->allocated = true;
    allocated_ += block->size;
    if (rest == nullptr) return;
  }
  Cache(*rest);
}

}  // namespace reprise::replay
