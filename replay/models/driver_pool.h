// A stream-ordered pool of the driver: what cudaMallocAsync serves from, kept as PyTorch's
// backend:cudaMallocAsync keeps it, nothing given back until memory is out.
//
// The driver is closed; this is what its documentation says, and where it says nothing, the simplest rule.
// Assumed:
//   - blocks are multiples of 512 bytes, and the pool grows by whole chunks of 32 MiB, one call for as many
//     as a block needs
//   - a request takes the best fit of all that is free: the device is done with it by then (model.h), and a
//     free that is complete serves every stream (CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, on by default)
//   - when memory is out wholly free chunks go back; a chunk that holds a live block stays where it is
// Left out, for want of a rule: NVIDIA says that a pool may also remap unused memory where it lies scattered,
// instead of growing. What is reserved here is at least what it is there.
#pragma once

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class DriverPool : public AllocatorModel {
 public:
  static constexpr Bytes kChunk{kMiB * 32};  // that it takes from the driver, or a multiple

  explicit DriverPool(Bytes capacity) : driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

 private:
  Block* TakeFree(Bytes size);
  Block* NewChunk(Bytes size);
  void Cache(Block& block);
  void ReleaseChunks();

  ModelDriver driver_;
  BlockMap blocks_;
  FreeBySize free_;
  Bytes allocated_;
  int64_t chunks_ = 0;
};

}  // namespace reprise::replay
