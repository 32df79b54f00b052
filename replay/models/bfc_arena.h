// One range that grows at its end: best fit with coalescing, as XLA's and TensorFlow's BFC allocator places
// blocks in the region that it takes at the start.
//
// Blocks are multiples of 256 bytes. The smallest free range that is large enough is taken, and split where
// it is twice as large as needed or at least 128 MiB would be wasted (XLA's rule). Streams share all of it:
// the order between them is left to the framework, as XLA does with its one compute stream. The real one
// preallocates a share of the device; here the range ends where its highest block ever ended, in steps of 2
// MiB, so that its reserved bytes say how large a share would have been enough. Nothing is given back.
#pragma once

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class BfcArena : public AllocatorModel {
 public:
  explicit BfcArena(Bytes capacity) : driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

 private:
  Block* Grow(Bytes size);
  Block& Joined(Block& block);

  ModelDriver driver_;
  BlockMap blocks_;
  FreeBySize free_;
  Bytes allocated_;
  Offset last_;  // address of the highest block, if there is one
};

}  // namespace reprise::replay
