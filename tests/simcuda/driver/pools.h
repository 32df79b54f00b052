// The stream-ordered allocator.
//
// A pool takes chunks of physical memory from its device and cuts blocks out of them. A free block remembers
// the frees it came from: a stream may take it once those have run, or at once if they lie on that same
// stream (the order of the stream then keeps the two apart). Events are not followed: that is allowed, and
// finds fewer blocks.
#pragma once

#include <map>

#include "tests/simcuda/driver/simulator.h"

namespace sim {

struct FreeTag {
  const Stream* stream = nullptr;  // to compare only
  uint64_t operation = 0;
};

struct PoolBlock {
  uint64_t size = 0;
  uint64_t chunk = 0;  // its address
  bool free = false;
  std::vector<FreeTag> tags;  // of a free block: the frees that may not have run yet
};

struct PoolChunk {
  uint64_t size = 0;
  uint64_t physical = 0;
};

struct Pool {
  int device = 0;  // or kHost
  bool is_default = false;
  bool destroyed = false;
  bool managed = false;
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  bool exported = false;  // a handle of it has been given
  unsigned usage = 0;
  bool within_reach = false;  // of a network card
  uint64_t max_size = 0;      // 0: none
  uint32_t readable = 0;      // devices, as bits
  uint32_t writable = 0;
  uint64_t release_threshold = 0;
  uint64_t reserved = 0, reserved_high = 0;
  uint64_t used = 0, used_high = 0;
  int reuse[3] = {1, 1, 1};  // follow events, opportunistic, internal dependencies
  std::map<uint64_t, PoolChunk> chunks;
  std::map<uint64_t, PoolBlock> blocks;  // all of all chunks, by address
};

Pool* MakePool(Simulator& sim, int device, bool is_default);
CUmemoryPool HandleOf(const Pool* pool);
Pool* FindPool(Simulator& sim, CUmemoryPool handle);  // null if it is none, or destroyed

// The address of a new block, or nothing if neither pool nor device have the memory.
std::optional<uint64_t> TakeFromPool(Simulator& sim, Pool& pool, uint64_t bytes, const Stream& stream);
// The block can be taken again from `operation` on; 0 for one that has run.
void GiveToPool(Simulator& sim, Pool& pool, uint64_t address, const Stream* stream, uint64_t operation);
// Gives wholly free chunks back to the device while more than `keep` bytes are reserved.
void TrimPool(Simulator& sim, Pool& pool, uint64_t keep);
// What every synchronisation does: each pool keeps no more than its release threshold.
void TrimPools(Simulator& sim);
// Memory of a device, or of the host; where it has none left, pools give back what they can first.
std::optional<uint64_t> TakePhysical(Simulator& sim, int device, uint64_t bytes);

}  // namespace sim
