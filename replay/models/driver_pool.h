// A stream-ordered pool of the driver: what cudaMallocAsync serves from, kept as PyTorch's
// backend:cudaMallocAsync keeps it, nothing given back until memory is out.
//
// The driver is closed; this is what its documentation says, and where it says nothing, the simplest rule.
// Assumed:
//   - blocks are multiples of 512 bytes, and the pool grows by whole chunks of 32 MiB, one call for as many
//     as a block needs
//   - a request takes the best fit of what its own stream freed, then of what no stream has used yet; what
//     another stream freed is not ordered with it, as events say nothing about waits between streams
//   - a free range belongs to the stream that freed it and joins neighbours of the same stream alone
//   - when memory is out the pool waits for the device, so that all free memory is everybody's; then wholly
//     free chunks go back; a chunk that holds a live block stays where it is
#pragma once

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class DriverPool : public AllocatorModel {
 public:
  explicit DriverPool(Bytes capacity) : driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

 private:
  Block* TakeFree(Bytes size, Stream stream);
  Block* NewChunk(Bytes size);
  void Cache(Block& block);
  void Synchronize();
  void ReleaseChunks();

  ModelDriver driver_;
  BlockMap blocks_;
  FreeBySize free_;
  Bytes allocated_;
  int64_t chunks_ = 0;
};

}  // namespace reprise::replay
