// PyTorch's caching allocator under expandable_segments:True.
//
// A segment is a range of addresses, ample for all memory there is, one for each stream and pool. Memory is
// mapped into it where a request needs it, in pieces of 2 MiB for small blocks and 20 MiB for large ones, and
// joins the free blocks beside it; so there are no ends of segments at which remainders stay. A request takes
// the best fit of what is mapped and free; of a block at the end of what is mapped, the room that it could
// grow to counts. Blocks are split down to 512 bytes in both pools. When memory is out, every free piece is
// unmapped, also within a segment, and mapped anew.
//
// The rules are those of c10/cuda/CUDACachingAllocator.cpp of PyTorch, read at commit 001074d25084.
#pragma once

#include <array>
#include <optional>

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class TorchExpandable : public AllocatorModel {
 public:
  explicit TorchExpandable(Bytes capacity) : driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  // The block goes back to the stream it was allocated on, whichever stream frees it.
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

 private:
  struct Pool {
    FreeBySize free;
    FreeByAddress unmapped;
  };

  Pool& PoolOf(const Block& block) { return pools_[block.small ? 0 : 1]; }
  Block* TakeCached(Bytes size, Stream stream);
  Bytes RoomOf(const Block& block);
  Block* Grow(Bytes size, Stream stream);
  Block* FindRoom(Bytes size, Stream stream);
  Block* Map(Block& block, Bytes bytes);
  void Unmap(Block& block);
  void ReleaseCached();
  Block& MergeFree(Block& block);
  Block& MergeUnmapped(Block& block);

  ModelDriver driver_;
  BlockMap blocks_;
  std::array<Pool, 2> pools_;  // small, large
  Bytes allocated_;
  int64_t segments_ = 0;
};

}  // namespace reprise::replay
