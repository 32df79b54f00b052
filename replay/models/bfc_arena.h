// One range: best fit with coalescing.
//
// Blocks are multiples of 256 bytes. The smallest free range that is large enough is taken. Kind::kXla places
// as XLA's and TensorFlow's BFC allocator does without growth: all is there from the start, and a range, that
// at the end as any other, is split where it is twice as large as needed or at least 128 MiB would be wasted.
// Kind::kPlain is the plain arena, which wastes nothing and grows at its end by what is missing, in steps of
// 2 MiB. Streams share all of it: the order between them is left to the framework, as XLA does with its one
// compute stream. Nothing is given back.
//
// XLA takes a share of the device. Here that is the capacity, or more than any job asks for; reserved is up to
// where its highest block ever ended, in the same steps. With a share of just that size a block may go
// elsewhere, because the range at the end is no longer the largest: whether a capacity is enough, a run with it
// says.
#pragma once

#include "replay/models/block_map.h"
#include "replay/models/model.h"

namespace reprise::replay {

class BfcArena : public AllocatorModel {
 public:
  enum class Kind { kXla, kPlain };
  static constexpr Bytes kStep{kMiB * 2};         // by which what is reserved grows
  static constexpr Bytes kMostWaste{kMiB * 128};  // of a block under XLA's rules: more is split off

  explicit BfcArena(Bytes capacity, Kind kind = Kind::kXla);

  std::optional<Offset> Allocate(Bytes bytes, Stream stream) override;
  bool Free(Offset offset, Stream stream) override;
  Bytes reserved() const override { return reserved_; }
  Bytes allocated() const override { return allocated_; }
  int64_t driver_allocations() const override { return reserved_ > Bytes(0) ? 1 : 0; }

 private:
  Block* Grow(Bytes size);
  bool ShouldSplit(const Block& block, Bytes size) const;
  Block& Joined(Block& block);

  const Kind kind_;
  const Bytes most_;
  BlockMap blocks_;
  FreeBySize free_;
  Bytes allocated_;
  Bytes reserved_;
};

}  // namespace reprise::replay
