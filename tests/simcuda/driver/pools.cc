#include "tests/simcuda/driver/pools.h"

#include <algorithm>

namespace sim {
namespace {

bool Over(const Simulator& sim, const FreeTag& tag) { return sim.executor.Done(tag.operation); }

bool MayTake(const Simulator& sim, const Pool& pool, const PoolBlock& block, const Stream& stream) {
  return std::all_of(block.tags.begin(), block.tags.end(), [&](const FreeTag& tag) {
    bool opportunistic = pool.reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC - 1] != 0;
    return tag.stream == &stream || (opportunistic && Over(sim, tag));
  });
}

Physical& MemoryOf(Simulator& sim, int device) {
  return device == kHost ? sim.host() : sim.devices[device]->physical;
}

void MapChunk(Simulator& sim, const Pool& pool, uint64_t address, const PoolChunk& chunk) {
  char* bytes = MemoryOf(sim, pool.device).At(chunk.physical);
  sim.addresses.Map(address, {chunk.size, bytes, pool.device, pool.readable, pool.writable, false});
}

bool AddChunk(Simulator& sim, Pool& pool, uint64_t bytes) {
  uint64_t size = RoundUp(bytes, kPageGrain);
  if (pool.max_size != 0 && pool.reserved + size > pool.max_size) return false;
  std::optional<uint64_t> physical = TakePhysical(sim, pool.device, size);
  if (!physical) return false;
  std::optional<uint64_t> address = sim.addresses.Reserve(size, kPageGrain);
  if (!address) {
    MemoryOf(sim, pool.device).Give(*physical, size);
    return false;
  }
  pool.chunks[*address] = {size, *physical};
  pool.blocks[*address] = {size, *address, true, {}};
  MapChunk(sim, pool, *address, pool.chunks[*address]);
  pool.reserved += size;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

// The smallest free block that will do.
std::map<uint64_t, PoolBlock>::iterator FindBlock(Simulator& sim, Pool& pool, uint64_t bytes,
                                                  const Stream& stream) {
  auto best = pool.blocks.end();
  for (auto it = pool.blocks.begin(); it != pool.blocks.end(); ++it) {
    const PoolBlock& block = it->second;
    if (!block.free || block.size < bytes || !MayTake(sim, pool, block, stream)) continue;
    if (best == pool.blocks.end() || block.size < best->second.size) best = it;
  }
  return best;
}

void MergeWithNext(Pool& pool, std::map<uint64_t, PoolBlock>::iterator block) {
  auto next = std::next(block);
  if (next == pool.blocks.end() || !next->second.free || next->second.chunk != block->second.chunk) return;
  block->second.size += next->second.size;
  std::vector<FreeTag>& tags = next->second.tags;
  block->second.tags.insert(block->second.tags.end(), tags.begin(), tags.end());
  pool.blocks.erase(next);
}

}  // namespace

CUmemoryPool HandleOf(const Pool* pool) { return reinterpret_cast<CUmemoryPool>(const_cast<Pool*>(pool)); }

Pool* MakePool(Simulator& sim, int device, bool is_default) {
  // The handle of one that is gone comes again.
  const auto gone = std::find_if(sim.pools.begin(), sim.pools.end(), [](const auto& entry) {
    return entry.second->destroyed && entry.second->chunks.empty();
  });
  Pool* made = nullptr;
  if (gone != sim.pools.end()) {
    made = gone->second.get();
    *made = {};
  } else {
    auto pool = std::make_unique<Pool>();
    made = pool.get();
    sim.pools[HandleOf(made)] = std::move(pool);
  }
  made->device = device;
  made->is_default = is_default;
  made->readable = made->writable = device == kHost ? 0 : 1U << device;
  return made;
}

Pool* FindPool(Simulator& sim, CUmemoryPool handle) {
  auto found = sim.pools.find(handle);
  return found == sim.pools.end() || found->second->destroyed ? nullptr : found->second.get();
}

std::optional<uint64_t> TakeFromPool(Simulator& sim, Pool& pool, uint64_t bytes, const Stream& stream) {
  uint64_t size = RoundUp(bytes, kAllocationGrain);
  auto block = FindBlock(sim, pool, size, stream);
  if (block == pool.blocks.end()) {
    if (!AddChunk(sim, pool, size)) return std::nullopt;
    block = FindBlock(sim, pool, size, stream);
  }
  uint64_t address = block->first;
  PoolBlock& taken = block->second;
  if (taken.size > size) {
    pool.blocks[address + size] = {taken.size - size, taken.chunk, true, taken.tags};
    taken.size = size;
  }
  taken.free = false;
  taken.tags.clear();
  pool.used += size;
  pool.used_high = std::max(pool.used_high, pool.used);
  return address;
}

void GiveToPool(Simulator& sim, Pool& pool, uint64_t address, const Stream* stream, uint64_t operation) {
  auto block = pool.blocks.find(address);
  pool.used -= block->second.size;
  block->second.free = true;
  block->second.tags = {{stream, operation}};
  MergeWithNext(pool, block);
  if (block != pool.blocks.begin() && std::prev(block)->second.free) MergeWithNext(pool, std::prev(block));
  if (pool.destroyed && pool.used == 0) TrimPool(sim, pool, 0);
}

void TrimPool(Simulator& sim, Pool& pool, uint64_t keep) {
  for (auto chunk = pool.chunks.begin(); chunk != pool.chunks.end();) {
    auto [address, what] = *chunk;
    const PoolBlock& block = pool.blocks.at(address);
    bool over =
        std::all_of(block.tags.begin(), block.tags.end(), [&](const FreeTag& tag) { return Over(sim, tag); });
    if (!block.free || block.size != what.size || !over || pool.reserved - what.size < keep) {
      ++chunk;
      continue;
    }
    sim.addresses.Unmap(address);
    sim.addresses.Release(address, what.size);
    MemoryOf(sim, pool.device).Give(what.physical, what.size);
    pool.reserved -= what.size;
    pool.blocks.erase(address);
    chunk = pool.chunks.erase(chunk);
  }
}

void TrimPools(Simulator& sim) {
  for (auto& [handle, pool] : sim.pools) TrimPool(sim, *pool, pool->destroyed ? 0 : pool->release_threshold);
}

std::optional<uint64_t> TakePhysical(Simulator& sim, int device, uint64_t bytes) {
  Physical& memory = MemoryOf(sim, device);
  if (std::optional<uint64_t> offset = memory.Take(bytes)) return offset;
  for (auto& [handle, pool] : sim.pools) {
    if (pool->device == device) TrimPool(sim, *pool, 0);
  }
  return memory.Take(bytes);
}

}  // namespace sim
