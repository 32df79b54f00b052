#include "replay/models/torch_native.h"

#include <algorithm>

namespace reprise::replay {

std::optional<Offset> TorchNative::Allocate(Bytes bytes, Stream stream) {
  const Bytes size = TorchRounded(bytes, options_);
  Block* block = TakeCached(size, stream);
  if (block == nullptr) {
    CollectGarbage();
    block = NewSegment(size, stream);
    if (block == nullptr && ReleaseOversize(size, stream)) block = NewSegment(size, stream);
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
  FreeBySize& free = PoolOf(block->small).free;
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
  Pool& pool = PoolOf(block.small);
  block.allocated = false;
  block.cached_at = pool.searches;
  pool.free.insert(&block);
}

Block* TorchNative::TakeCached(Bytes size, Stream stream) {
  Pool& pool = PoolOf(TorchIsSmall(size));
  ++pool.searches;
  const auto it = BestFit(pool.free, size, stream);
  if (it == pool.free.end()) return nullptr;
  Block* const block = *it;
  // Oversize blocks are kept for oversize requests, and for those that waste little of them.
  if (size < options_.max_split_size) {
    if (block->size >= options_.max_split_size) return nullptr;
  } else if (block->size >= size + kTorchSharedSegment) {
    return nullptr;
  }
  pool.free.erase(it);
  return block;
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

bool TorchNative::ShouldSplit(const Block& block, Bytes size) const {
  const Bytes rest = block.size - size;
  if (block.small) return rest >= kTorchUnit;
  return size < options_.max_split_size && rest > kTorchMostSmall;
}

void TorchNative::ReleaseSegment(Block& block) {
  PoolOf(block.small).free.erase(&block);
  driver_.GiveBack(block.size);
  blocks_.Remove(block);
}

// The smallest oversize block that is large enough, or else as many as it takes, the largest first.
bool TorchNative::ReleaseOversize(Bytes size, Stream stream) {
  if (options_.max_split_size == kTorchNoLimit) return false;
  const Bytes wanted = std::max(size, options_.max_split_size);
  FreeBySize& free = PoolOf(TorchIsSmall(size)).free;
  if (const auto it = BestFit(free, wanted, stream); it != free.end()) {
    ReleaseSegment(**it);
    return true;
  }
  std::vector<Block*> oversize;
  for (auto it = BestFit(free, options_.max_split_size, stream); it != free.end() && (*it)->stream == stream;
       ++it) {
    oversize.push_back(*it);
  }
  Bytes released;
  while (released < wanted && !oversize.empty()) {
    released += oversize.back()->size;
    ReleaseSegment(*oversize.back());
    oversize.pop_back();
  }
  return released >= wanted;
}

void TorchNative::ReleaseCached() {
  for (Pool& pool : pools_) {
    for (auto it = pool.free.begin(); it != pool.free.end();) {
      Block& block = **it++;
      if (blocks_.IsWholeSegment(block)) ReleaseSegment(block);
    }
  }
}

// Above the threshold: releases wholly free large segments that have been cached longer than the average,
// again until enough is gone.
void TorchNative::CollectGarbage() {
  if (options_.garbage_collection_threshold <= 0 || driver_.capacity() == Bytes(0)) return;
  const Bytes threshold(static_cast<int64_t>(options_.garbage_collection_threshold *
                                             static_cast<double>(driver_.capacity().count())));
  Pool& pool = PoolOf(false);
  const auto age = [&pool](const Block& block) { return pool.searches - block.cached_at; };
  std::vector<Block*> old;
  int64_t total_age = 0;
  for (Block* block : pool.free) {
    if (!blocks_.IsWholeSegment(*block)) continue;
    old.push_back(block);
    total_age += age(*block);
  }
  while (driver_.reserved() > threshold && !old.empty()) {
    const double average = static_cast<double>(total_age) / static_cast<double>(old.size());
    const auto keep = std::stable_partition(old.begin(), old.end(), [&](const Block* block) {
      return static_cast<double>(age(*block)) < average;
    });
    for (auto it = keep; it != old.end(); ++it) {
      total_age -= age(**it);
      ReleaseSegment(**it);
    }
    old.erase(keep, old.end());
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
