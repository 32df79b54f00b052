// The contexts, streams, pools and captures of a random program: how they begin and end.
#include "tests/cuda/random_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kMostContexts = 8;
constexpr size_t kMostPools = 8;
constexpr size_t kPoolLimit = size_t{1} << 30;  // more than all blocks together
constexpr size_t kCapturedBytes = 100000;

template <typename Kind>
size_t CountLive(const std::vector<Kind>& all) {
  return std::count_if(all.begin(), all.end(), [](const Kind& one) { return one.alive; });
}

CUgreenCtx NewGreenContext(int device) {
  CUdevResource multiprocessors;
  CUdevResourceDesc description;
  CUgreenCtx green = nullptr;
  NEED(cuDeviceGetDevResource(device, &multiprocessors, CU_DEV_RESOURCE_TYPE_SM));
  NEED(cuDevResourceGenerateDesc(&description, &multiprocessors, 1));
  NEED(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

// Each device may use the memory of the others' pools.
void OpenToPeers(const World& world, CUmemoryPool pool, int device) {
  for (int peer = 0; peer < world.devices; ++peer) {
    if (peer == device) continue;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, peer}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    NEED(cuMemPoolSetAccess(pool, &access, 1));
  }
}

// A synchronous block's context, by which it ends: of those asked for in a green one the primary one.
size_t OwnerOf(const World& world, const Block& block) {
  return world.contexts[block.context].green != nullptr ? block.device : block.context;
}

bool EndsWith(const World& world, const Block& block, size_t context) {
  return block.IsSynchronous() && OwnerOf(world, block) == context;
}

// All use of blocks that end with the context, and of any by its streams, is over. False: that cannot be waited for now.
bool FinishUse(World& world, size_t context) {
  const auto concerns = [&](const Block& block) {
    return EndsWith(world, block, context) || (block.last && world.streams[*block.last].context == context);
  };
  for (const Block& block : world.blocks) {
    if (concerns(block) && !world.CanBeWaitedFor(block.last)) return false;
  }
  for (Block& block : world.blocks) {
    if (!concerns(block)) continue;
    world.Finish(block.last);
    block.last.reset();
  }
  return true;
}

void ForgetBlocks(World& world, size_t context) {
  std::erase_if(world.blocks, [&](const Block& block) { return EndsWith(world, block, context); });
}

void ForgetStreams(World& world, size_t context) {
  for (Stream& stream : world.streams) {
    if (stream.context == context) stream.alive = false;
  }
}

std::vector<size_t> LivePools(const World& world, bool devices_own_too) {
  std::vector<size_t> live;
  for (size_t i = 0; i < world.pools.size(); ++i) {
    if (world.pools[i].alive && (devices_own_too || !world.pools[i].devices_own)) live.push_back(i);
  }
  return live;
}

void EndCapture(World& world) {
  CUgraph graph = nullptr;
  world.MakeCurrent(world.streams[*world.captured].context);
  world.Report("cuStreamEndCapture", cuStreamEndCapture(world.streams[*world.captured].handle, &graph));
  if (graph != nullptr) NEED(cuGraphDestroy(graph));
  world.captured.reset();
}

}  // namespace

void Need(const char* call, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s failed: %d\n", call, result);
  std::_Exit(3);
}

World::World(uint64_t seed) : random(seed) {
  NEED(cuInit(0));
  NEED(cuDeviceGetCount(&devices));
  for (int device = 0; device < devices; ++device) {
    Context primary{.device = device, .primary = true};
    CUmemoryPool pool = nullptr;
    NEED(cuDevicePrimaryCtxRetain(&primary.handle, device));
    NEED(cuDeviceGetDefaultMemPool(&pool, device));
    contexts.push_back(primary);
    AddPool(pool, device, true);
    device_pools.push_back(device);
  }
  for (int device = 0; device < devices; ++device) {
    AddLegacyStream(device);
    AddOwnStream(device);
    AddStream(device);
    AddStream(device);
  }
}

void World::Report(const char* what, int64_t value) const {
  std::printf("%d %s %lld\n", step, what, static_cast<long long>(value));
}

size_t World::SomeContext() {
  std::vector<size_t> live;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (contexts[i].alive) live.push_back(i);
  }
  return OneOf(live);
}

bool World::IsUsable(size_t stream) const {
  const Stream& s = streams[stream];
  if (!s.alive || stream == captured) return false;
  return s.handle != CU_STREAM_PER_THREAD || s.thread == thread;
}

std::vector<size_t> World::UsableStreams() const {
  std::vector<size_t> usable;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (IsUsable(i)) usable.push_back(i);
  }
  return usable;
}

size_t World::SomeStreamFor(const Block& block) {
  std::vector<size_t> usable = UsableStreams();
  std::erase_if(usable, [&](size_t stream) {
    return block.IsSynchronous() && contexts[streams[stream].context].device != block.device;
  });
  return OneOf(usable);
}

void World::Finish(std::optional<size_t> stream) const {
  if (!stream) return;
  MakeCurrent(streams[*stream].context);
  NEED(cuStreamSynchronize(streams[*stream].handle));
}

void World::Order(std::optional<size_t> earlier, size_t later) const {
  if (!earlier || *earlier == later) return;
  const Stream& first = streams[*earlier];
  MakeCurrent(first.context);
  NEED(cuEventRecord(first.event, first.handle));
  MakeCurrent(streams[later].context);
  NEED(cuStreamWaitEvent(streams[later].handle, first.event, 0));
}

size_t World::AddStream(size_t context) {
  MakeCurrent(context);
  Stream stream{.context = context, .non_blocking = contexts[context].green != nullptr || !OneIn(3)};
  const unsigned flags = stream.non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  if (contexts[context].green != nullptr) {
    NEED(cuGreenCtxStreamCreate(&stream.handle, contexts[context].green, flags, 0));
  } else {
    NEED(cuStreamCreate(&stream.handle, flags));
  }
  NEED(cuEventCreate(&stream.event, CU_EVENT_DISABLE_TIMING));
  streams.push_back(stream);
  return streams.size() - 1;
}

void World::AddLegacyStream(size_t context) {
  MakeCurrent(context);
  Stream stream{.handle = CU_STREAM_LEGACY, .context = context};
  NEED(cuEventCreate(&stream.event, CU_EVENT_DISABLE_TIMING));
  streams.push_back(stream);
}

void World::AddOwnStream(size_t context) {
  MakeCurrent(context);
  Stream stream{.handle = CU_STREAM_PER_THREAD, .context = context, .thread = thread};
  NEED(cuEventCreate(&stream.event, CU_EVENT_DISABLE_TIMING));
  streams.push_back(stream);
}

void World::AddPool(CUmemoryPool pool, int device, bool devices_own) {
  OpenToPeers(*this, pool, device);
  pools.push_back({.handle = pool, .device = device, .devices_own = devices_own});
}

void OpenStream(World& world) { world.AddStream(world.SomeContext()); }

void CloseStream(World& world) {
  std::vector<size_t> own = world.UsableStreams();
  std::erase_if(own, [&](size_t stream) { return world.streams[stream].IsDefault(); });
  if (own.empty()) return;
  const size_t closed = world.OneOf(own);
  Stream& stream = world.streams[closed];
  for (Block& block : world.blocks) {
    if (block.last != closed) continue;
    world.Finish(closed);
    block.last.reset();
  }
  world.MakeSomeContextCurrent();
  NEED(cuEventDestroy(stream.event));
  world.Report("cuStreamDestroy", cuStreamDestroy(stream.handle));
  stream.alive = false;
}

void OpenContext(World& world) {
  if (CountLive(world.contexts) >= kMostContexts) return;
  Context context{.device = static_cast<int>(world.Draw(world.devices))};
  if (world.OneIn(3)) {
    context.green = NewGreenContext(context.device);
    NEED(cuCtxFromGreenCtx(&context.handle, context.green));
  } else {
    NEED(cuCtxCreate(&context.handle, nullptr, 0, context.device));
  }
  world.contexts.push_back(context);
  const size_t opened = world.contexts.size() - 1;
  world.AddLegacyStream(opened);
  world.AddOwnStream(opened);
  world.AddStream(opened);
}

void EndContext(World& world) {
  const size_t ended = world.SomeContext();
  Context& context = world.contexts[ended];
  if (context.primary || (world.captured && world.streams[*world.captured].context == ended)) return;
  world.MakeCurrent(ended);
  if (!world.captured && world.OneIn(2)) NEED(cuCtxSynchronize());
  if (!FinishUse(world, ended)) return;
  ForgetBlocks(world, ended);
  world.MakeSomeContextCurrent();
  if (context.green != nullptr) {
    world.Report("cuGreenCtxDestroy", cuGreenCtxDestroy(context.green));
    // The blocks that were asked for there stay.
    for (Block& block : world.blocks) {
      if (block.context == ended) block.context = block.device;
    }
  } else {
    world.Report("cuCtxDestroy", cuCtxDestroy(context.handle));
  }
  context.alive = false;
  ForgetStreams(world, ended);
  world.MakeCurrent(0);
}

void EndPrimaryContext(World& world) {
  const size_t device = world.Draw(world.devices);
  if (world.captured || !FinishUse(world, device)) return;
  ForgetBlocks(world, device);
  Context& context = world.contexts[device];
  NEED(cuCtxSetCurrent(nullptr));
  if (world.OneIn(2)) {
    world.Report("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(context.device));
    NEED(cuDevicePrimaryCtxRetain(&context.handle, context.device));
    NEED(cuDevicePrimaryCtxRelease(context.device));
  } else {
    world.Report("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease(context.device));
    NEED(cuDevicePrimaryCtxRetain(&context.handle, context.device));
  }
  ForgetStreams(world, device);
  world.AddLegacyStream(device);
  world.AddOwnStream(device);
  world.AddStream(device);
  world.AddStream(device);
}

void OpenPool(World& world) {
  if (CountLive(world.pools) >= kMostPools) return;
  const int device = static_cast<int>(world.Draw(world.devices));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  if (world.OneIn(4)) properties.maxSize = kPoolLimit;
  CUmemoryPool pool = nullptr;
  NEED(cuMemPoolCreate(&pool, &properties));
  world.AddPool(pool, device, false);
}

void ClosePool(World& world) {
  const std::vector<size_t> own = LivePools(world, false);
  if (own.empty()) return;
  const size_t closed = world.OneOf(own);
  Pool& pool = world.pools[closed];
  world.Report("cuMemPoolDestroy", cuMemPoolDestroy(pool.handle));
  pool.alive = false;
  size_t& of_device = world.device_pools[pool.device];
  if (of_device == closed) of_device = pool.device;
}

void SetPoolOfDevice(World& world) {
  const size_t chosen = world.OneOf(LivePools(world, true));
  const Pool& pool = world.pools[chosen];
  world.Report("cuDeviceSetMemPool", cuDeviceSetMemPool(pool.device, pool.handle));
  world.device_pools[pool.device] = chosen;
}

void TrimPool(World& world) {
  const Pool& pool = world.pools[world.OneOf(LivePools(world, true))];
  const size_t keep = world.OneIn(2) ? 0 : world.Draw(1 << 24);
  world.Report("cuMemPoolTrimTo", cuMemPoolTrimTo(pool.handle, keep));
}

// Relaxed, as calls in stream order elsewhere would void one of another mode, and of a stream that waits for no other, as use of
// the legacy one would void its.
void BeginOrEndCapture(World& world) {
  if (world.captured) return EndCapture(world);
  std::vector<size_t> apart = world.UsableStreams();
  std::erase_if(apart, [&](size_t stream) { return !world.streams[stream].non_blocking; });
  if (apart.empty()) return;
  const size_t begun = world.OneOf(apart);
  const CUstream stream = world.streams[begun].handle;
  world.MakeCurrent(world.streams[begun].context);
  const CUresult result = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  world.Report("cuStreamBeginCapture", result);
  if (result != CUDA_SUCCESS) return;
  world.captured = begun;
  if (world.OneIn(2)) return;
  CUdeviceptr graphs_own = 0;
  const CUresult allocated = cuMemAllocAsync(&graphs_own, kCapturedBytes, stream);
  world.Report("cuMemAllocAsync, captured", allocated);
  if (allocated == CUDA_SUCCESS) world.Report("cuMemFreeAsync, captured", cuMemFreeAsync(graphs_own, stream));
}

void WaitForStream(World& world) {
  const Stream& stream = world.streams[world.SomeStream()];
  world.MakeCurrent(stream.context);
  world.Report("cuStreamSynchronize", cuStreamSynchronize(stream.handle));
}

void WaitForContext(World& world) {
  if (world.captured) return;
  world.MakeSomeContextCurrent();
  world.Report("cuCtxSynchronize", cuCtxSynchronize());
}
