// PyTorch's caching allocator with segments of cudaMalloc, its default.
//
// Requests are rounded to 512 bytes. Those of at most 1 MiB live in segments of 2 MiB, larger ones below 10
// MiB in segments of 20 MiB, the rest in segments of their own. A request takes the smallest cached block of
// its stream and pool that is large enough, and splits it if enough is left: 512 bytes in the small pool,
// more than 1 MiB in the large. A freed block joins its free neighbours; a segment goes back to the driver
// only when memory is out: then every segment that is wholly free. What PYTORCH_CUDA_ALLOC_CONF can change in this
// (max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions) is not modelled.
//
// The rules are those of c10/cuda/CUDACachingAllocator.cpp of PyTorch, read at commit 001074d25084.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class TorchNative : public AllocatorModel {
 public:
  explicit TorchNative(Bytes capacity) : driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  // The block goes back to the stream it was allocated on, whichever stream frees it.
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

  // A block of a segment that is there before the first request.
  struct Placed {
    Offset address;
    Bytes size;
  };
  // Starts with a segment whose `live` blocks, ascending, are allocated and the rest of which is free. To
  // continue from a recorded layout.
  void AdoptSegment(Offset address, Bytes size, Stream stream, const std::vector<Placed>& live);

 private:
  Block* TakeCached(Bytes size, Stream stream);
  Block* NewSegment(Bytes size, Stream stream);
  static bool ShouldSplit(const Block& block, Bytes size);
  void Cache(Block& block);
  void ReleaseSegment(Block& block);
  void ReleaseCached();
  FreeBySize& PoolOf(bool small) { return pools_[small ? 0 : 1]; }

  ModelDriver driver_;
  BlockMap blocks_;
  std::array<FreeBySize, 2> pools_;
  Bytes allocated_;
  int64_t segments_ = 0;
};

}  // namespace reprise::replay
