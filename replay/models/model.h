// Models of the allocators that a job may have run on, or could run on.
//
// Glossary
//   model       takes a job's requests one by one and decides, as the allocator it stands for would, what to
//               hand out again and what to ask the driver for. Bookkeeping alone: addresses are numbers
//   reserved    bytes held from the driver
//   allocated   bytes of the blocks handed out, as the allocator rounds them
//   segment     what one call of the driver gave; a model splits it into blocks
//   cached      free, and kept for later requests
//
// What all of them assume: one device; a request happens at the moment of its event; work on the device is
// done by the time of the free, so that nothing waits for events of other streams (PyTorch's record_stream);
// private pools of graphs do not occur; no request asks for more alignment than every block has.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace reprise::replay {

class AllocatorModel {
 public:
  virtual ~AllocatorModel() = default;

  // Where the block lies, for bytes > 0. nullopt: out of memory, after everything that the allocator does
  // about that.
  virtual std::optional<Offset> Allocate(Bytes bytes, Stream stream) = 0;
  // `offset`: a block that Allocate gave and that is live; anything else is ignored, and false.
  virtual bool Free(Offset offset, Stream stream) = 0;

  virtual Bytes reserved() const = 0;
  virtual Bytes allocated() const = 0;
  virtual int64_t driver_allocations() const = 0;  // calls so far that took memory from the driver
};

// The driver of a device of `capacity` bytes, without limit if that is 0: it hands out addresses, never one
// twice, so that the order of addresses is the order of the calls.
class ModelDriver {
 public:
  explicit ModelDriver(Bytes capacity) : capacity_(capacity) {}

  // Memory, and addresses for it.
  std::optional<Offset> Take(Bytes bytes) {
    if (bytes > kMostAddresses - (next_ - Offset(0)) || !Commit(bytes)) return std::nullopt;
    return Reserve(bytes);
  }
  // Addresses without memory.
  std::optional<Offset> Reserve(Bytes bytes) {
    if (bytes > kMostAddresses - (next_ - Offset(0))) return std::nullopt;
    const Offset address = next_;
    next_ = next_ + bytes;
    return address;
  }
  // Memory for addresses that the caller has already.
  bool Commit(Bytes bytes) {
    if (bytes > kMostAddresses - reserved_) return false;
    if (capacity_ > Bytes(0) && reserved_ + bytes > capacity_) return false;
    reserved_ += bytes;
    ++allocations_;
    return true;
  }
  void GiveBack(Bytes bytes) { reserved_ -= bytes; }
  // Memory that is there from the start, at an address of its own.
  void Adopt(Offset end, Bytes bytes) {
    reserved_ += bytes;
    if (end > next_) next_ = end;
  }

  Bytes reserved() const { return reserved_; }
  int64_t allocations() const { return allocations_; }

 private:
  static constexpr Bytes kMostAddresses{int64_t{1} << 61};  // sums of two stay in range

  const Bytes capacity_;
  Bytes reserved_;
  Offset next_;
  int64_t allocations_ = 0;
};

}  // namespace reprise::replay
