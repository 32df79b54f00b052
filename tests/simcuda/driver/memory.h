// Device memory. Physical memory is a memfd per device, mapped once for the simulator's own use (the alias).
// Device addresses are a reservation without access, so that a host that touches one faults; what lies behind
// an address is a table of mappings, and only the executor looks into it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "tests/simcuda/driver/ranges.h"

namespace sim {

constexpr uint64_t kAllocationGrain = 512;          // of addresses and of the accounting
constexpr uint64_t kPageGrain = uint64_t{2} << 20;  // of virtual memory management and of pools

inline uint64_t RoundUp(uint64_t bytes, uint64_t grain) { return (bytes + grain - 1) / grain * grain; }

constexpr int kHost = -1;     // in place of a device's ordinal: memory of the host
constexpr int kHostNode = 0;  // the host's only one

// The memory of one device, or what handles may have of the host's.
class Physical {
 public:
  explicit Physical(uint64_t capacity);

  std::optional<uint64_t> Take(uint64_t bytes);  // offset; nothing if the capacity does not hold it
  void Give(uint64_t offset, uint64_t bytes);    // reads as zero from then on

  char* At(uint64_t offset) const { return alias_ + offset; }
  int file() const { return file_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  void ResetPeak() { peak_ = used_; }

 private:
  uint64_t capacity_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
  Ranges space_;  // much larger than the capacity, so that fragments never stand in the way
  int file_ = -1;
  char* alias_ = nullptr;
};

struct Mapping {
  uint64_t size = 0;
  char* bytes = nullptr;  // in the alias
  int device = 0;         // whose memory it is; kHost: the host's
  uint32_t readable = 0;  // by which devices, as bits
  uint32_t writable = 0;
  bool open_to_peers = false;  // readable and writable wherever access to the peer `device` is enabled
};

class AddressSpace {
 public:
  AddressSpace();

  bool Contains(uint64_t address) const { return address >= begin_ && address < end_; }
  std::optional<uint64_t> Reserve(uint64_t size, uint64_t alignment) { return free_.Take(size, alignment); }
  bool ReserveAt(uint64_t address, uint64_t size) { return free_.TakeAt(address, size); }
  void Release(uint64_t address, uint64_t size) { free_.Give(address, size); }

  void Map(uint64_t address, const Mapping& mapping) { mappings_[address] = mapping; }
  void Unmap(uint64_t address) { mappings_.erase(address); }
  // The mapping that holds `address`, with its own address; null if there is none.
  std::pair<uint64_t, Mapping*> Find(uint64_t address);

  // Calls `visit` for each piece of memory behind the range, in order; false, and no call, if a part is not
  // mapped or not `allowed`.
  bool Visit(uint64_t address, uint64_t size, const std::function<bool(const Mapping&)>& allowed,
             const std::function<void(char*, uint64_t)>& visit);

 private:
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  Ranges free_{0, 0};
  std::map<uint64_t, Mapping> mappings_;
};

}  // namespace sim
