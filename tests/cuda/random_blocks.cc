// The memory of a random program: blocks of all kinds, what uses and frees them, and what can be asked about them.
#include <iterator>

#include "tests/cuda/random_world.h"

namespace {

constexpr size_t kSizes[] = {1, 600, 5000, 65536, 300000, 1 << 20, (2 << 20) + 512, 5 << 20, 9 << 20};
constexpr size_t kMoreAtMost = 1000000;
// So many are together less than a device and any limit of a pool: none is refused for want of memory, which may be sooner with
// us (docs/cuda.md).
constexpr size_t kMostBlocks = 60;
constexpr size_t kAlignment = 256;  // that the driver promises

size_t SomeBytes(World& world) {
  const size_t bytes = kSizes[world.Draw(std::size(kSizes))];
  return world.OneIn(3) ? bytes + world.Draw(kMoreAtMost) : bytes;
}

void Fill(World& world, Block& block, size_t stream) {
  block.pattern = world.NextPattern();
  block.last = stream;
  world.MakeCurrent(world.streams[stream].context);
  NEED(FillPieces(block.at, block.bytes, block.pattern, world.streams[stream].handle));
}

void Verify(World& world, const Block& block, size_t stream) {
  world.MakeCurrent(world.streams[stream].context);
  NEED(VerifyPieces(block.at, block.bytes, block.pattern, world.streams[stream].handle));
}

void Use(World& world, Block& block, size_t stream) {
  world.Order(block.last, stream);
  Verify(world, block, stream);
  block.last = stream;
  if (world.OneIn(2)) Fill(world, block, stream);
}

// Which context is current is no matter where the stream's handle says whose it is.
void MakeCurrentFor(World& world, const Stream& stream) {
  if (stream.IsDefault() || world.OneIn(3)) {
    world.MakeCurrent(stream.context);
  } else {
    world.MakeSomeContextCurrent();
  }
}

CUresult AllocateSynchronous(World& world, Block& block) {
  world.MakeCurrent(block.context);
  const CUresult result = cuMemAlloc(&block.at, block.bytes);
  world.Report("cuMemAlloc", result);
  return result;
}

CUresult AllocateFromDevice(World& world, Block& block, const Stream& stream) {
  block.pool = world.device_pools[block.device];
  const CUresult result = cuMemAllocAsync(&block.at, block.bytes, stream.handle);
  world.Report("cuMemAllocAsync", result);
  return result;
}

CUresult AllocateFromPool(World& world, Block& block, const Stream& stream) {
  std::vector<size_t> pools;
  for (size_t i = 0; i < world.pools.size(); ++i) {
    if (world.pools[i].alive && world.pools[i].device == block.device) pools.push_back(i);
  }
  block.pool = world.OneOf(pools);
  const CUmemoryPool pool = world.pools[*block.pool].handle;
  const CUresult result = cuMemAllocFromPoolAsync(&block.at, block.bytes, pool, stream.handle);
  world.Report("cuMemAllocFromPoolAsync", result);
  return result;
}

CUresult AllocateOfSomeKind(World& world, Block& block, const Stream& stream) {
  if (world.OneIn(5)) return AllocateSynchronous(world, block);
  MakeCurrentFor(world, stream);
  if (world.OneIn(3)) return AllocateFromPool(world, block, stream);
  return AllocateFromDevice(world, block, stream);
}

// A synchronous free waits for what its block's own context has queued: all else is waited for before it.
void FinishForFree(World& world, const Block& block) {
  if (!block.last) return;
  if (world.OneIn(2)) Verify(world, block, *block.last);
  if (!block.IsSynchronous() || world.streams[*block.last].context != block.context) world.Finish(block.last);
}

CUresult FreeAtOnce(World& world, const Block& block) {
  FinishForFree(world, block);
  if (world.OneIn(3)) world.MakeSomeContextCurrent();
  const CUresult result = cuMemFree(block.at);
  world.Report("cuMemFree", result);
  if (world.OneIn(6)) world.Report("cuMemFree, again", cuMemFree(block.at));
  return result;
}

// A block that is freed beside a capture in the legacy stream of a created context may go to others while that stream still uses
// it: the one wait that is not made up for (docs/cuda.md, "Where an answer may differ").
bool MayFreeIn(const World& world, const Stream& stream) {
  return !world.captured || stream.handle != CU_STREAM_LEGACY || world.contexts[stream.context].primary;
}

CUresult FreeInOrder(World& world, Block& block, size_t stream) {
  Use(world, block, stream);
  MakeCurrentFor(world, world.streams[stream]);
  const CUstream handle = world.streams[stream].handle;
  const CUresult result = cuMemFreeAsync(block.at, handle);
  world.Report("cuMemFreeAsync", result);
  // A synchronous block lives until the stream comes to its free.
  if (!block.IsSynchronous() && world.OneIn(8))
    world.Report("cuMemFreeAsync, again", cuMemFreeAsync(block.at, handle));
  return result;
}

// A block that can be waited for now.
Block* SomeBlock(World& world) {
  if (world.blocks.empty()) return nullptr;
  Block& block = world.blocks[world.Draw(world.blocks.size())];
  return world.CanBeWaitedFor(block.last) ? &block : nullptr;
}

void AskForAddressRange(World& world, const Block& block, CUdeviceptr inside) {
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  world.Report("cuMemGetAddressRange", cuMemGetAddressRange(&begin, &bytes, inside));
  world.Report("  begins where the block does", begin == block.at);
  world.Report("  bytes", bytes);
}

template <typename Value>
Value Attribute(World& world, const char* name, CUpointer_attribute attribute, CUdeviceptr inside) {
  Value value{};
  world.Report(name, cuPointerGetAttribute(&value, attribute, inside));
  return value;
}
#define ATTRIBUTE(Value, name) Attribute<Value>(world, #name, CU_POINTER_ATTRIBUTE_##name, inside)

void AskForAttributes(World& world, const Block& block, CUdeviceptr inside) {
  world.Report("  is", ATTRIBUTE(unsigned, MEMORY_TYPE));
  world.Report("  is", ATTRIBUTE(int, DEVICE_ORDINAL));
  world.Report("  is", ATTRIBUTE(unsigned char, IS_MANAGED));
  const CUcontext context = ATTRIBUTE(CUcontext, CONTEXT);
  world.Report("  is one", context != nullptr);
  world.Report("  is the block's", context == world.contexts[block.context].handle);
  // Of a block whose pool has been destroyed the driver says what was its handle, and we null (docs/cuda.md).
  if (block.pool && !world.pools[*block.pool].alive) return;
  const CUmemoryPool pool = ATTRIBUTE(CUmemoryPool, MEMPOOL_HANDLE);
  world.Report("  is the block's", pool == (block.pool ? world.pools[*block.pool].handle : nullptr));
}

void AskForAttributesAtOnce(World& world, const Block& block, CUdeviceptr inside) {
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  unsigned type = 0;
  int ordinal = 0;
  CUdeviceptr begin = 0;
  void* values[] = {&type, &ordinal, &begin};
  world.Report("cuPointerGetAttributes", cuPointerGetAttributes(3, attributes, values, inside));
  world.Report("  type", type);
  world.Report("  ordinal", ordinal);
  world.Report("  begins where the block does", begin == block.at);
}

uint64_t PoolBytes(const Pool& pool, CUmemPool_attribute attribute) {
  cuuint64_t bytes = 0;
  NEED(cuMemPoolGetAttribute(pool.handle, attribute, &bytes));
  return bytes;
}

}  // namespace

void Allocate(World& world) {
  if (world.blocks.size() >= kMostBlocks) return;
  const size_t stream = world.SomeStream();
  const size_t context = world.streams[stream].context;
  Block block{.bytes = SomeBytes(world), .context = context, .device = world.contexts[context].device};
  if (AllocateOfSomeKind(world, block, world.streams[stream]) != CUDA_SUCCESS) return;
  world.Report("  is aligned", block.at % kAlignment == 0);
  Fill(world, block, stream);
  world.blocks.push_back(block);
}

void UseBlock(World& world) {
  Block* const block = SomeBlock(world);
  if (block != nullptr) Use(world, *block, world.SomeStreamFor(*block));
}

void FreeBlock(World& world) {
  Block* const block = SomeBlock(world);
  if (block == nullptr) return;
  const size_t stream = world.SomeStreamFor(*block);
  const bool at_once = block->IsSynchronous() ? !world.OneIn(3) : world.OneIn(5);
  if (!at_once && !MayFreeIn(world, world.streams[stream])) return;
  const CUresult freed = at_once ? FreeAtOnce(world, *block) : FreeInOrder(world, *block, stream);
  if (freed == CUDA_SUCCESS) world.blocks.erase(world.blocks.begin() + (block - world.blocks.data()));
}

void AskAboutBlock(World& world) {
  if (world.blocks.empty()) return;
  const Block& block = world.blocks[world.Draw(world.blocks.size())];
  const CUdeviceptr inside = block.at + world.Draw(block.bytes);
  AskForAddressRange(world, block, inside);
  AskForAttributes(world, block, inside);
  AskForAttributesAtOnce(world, block, inside);
}

// What is reserved, and both high marks, may differ: by how much the arena and the driver's pool grow, and since they are sums of
// both. They are told by what must hold of them.
void AskAboutPools(World& world) {
  for (const Pool& pool : world.pools) {
    if (!pool.alive) continue;
    const uint64_t used = PoolBytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    const uint64_t reserved = PoolBytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    world.Report("pool: used", used);
    world.Report("  is reserved", used <= reserved);
    world.Report("  is below its high mark", used <= PoolBytes(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
    world.Report("  so is what is reserved", reserved <= PoolBytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  }
}

// What has been freed stays with the process longer under the preload library: how much is free is told by what is live.
void AskForMemory(World& world) {
  const size_t context = world.SomeContext();
  world.MakeCurrent(context);
  size_t free = 0, total = 0, live = 0;
  world.Report("cuMemGetInfo", cuMemGetInfo(&free, &total));
  for (const Block& block : world.blocks)
    live += block.device == world.contexts[context].device ? block.bytes : 0;
  world.Report("  total", total);
  world.Report("  leaves room for what is live", free + live <= total);
}
