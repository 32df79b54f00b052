// One range that grows at its end: best fit with coalescing.
//
// Blocks are multiples of 256 bytes. The smallest free range that is large enough is taken. Split::kXla
// places as XLA's and TensorFlow's BFC allocator does in the region that it takes at the start: it splits a
// range where that is twice as large as needed or at least 128 MiB would be wasted. Split::kAlways is the
// plain arena, which wastes nothing. Streams share all of it: the order between them is left to the
// framework, as XLA does with its one compute stream. The real one preallocates a share of the device; here
// the range ends where its highest block ever ended, in steps of 2 MiB, so that its reserved bytes say how
// large a share would have been enough. Nothing is given back.
#pragma once

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class BfcArena : public AllocatorModel {
 public:
  enum class Split { kXla, kAlways };

  explicit BfcArena(Bytes capacity, Split split = Split::kXla) : split_(split), driver_(capacity) {}

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return driver_.reserved(); }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return driver_.allocations(); }

 private:
  Block* Grow(Bytes size);
  bool ShouldSplit(const Block& block, Bytes size) const;
  Block& Joined(Block& block);

  const Split split_;
  ModelDriver driver_;
  BlockMap blocks_;
  FreeBySize free_;
  Bytes allocated_;
  Offset last_;  // address of the highest block, if there is one
};

}  // namespace reprise::replay
