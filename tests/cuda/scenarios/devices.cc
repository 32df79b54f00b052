// Several devices and contexts: a call may name its device by its stream or its pool, by what is
// current, or not at all.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/cuda/scenarios/scenario.h"

namespace {

int DeviceOf(CUdeviceptr block) {
  int device = -1;
  cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block);
  return device;
}

CUdeviceptr FilledOn(CUstream stream) {
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(WorkFill(block, kMiB, 1, stream));
  DO(cuStreamSynchronize(stream));
  return block;
}

CUresult LetTheOtherUseThePool() {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuMemPoolSetAccess(DefaultPool(0), &access, 1);
}

void UseOn(CUstream stream, int seed) {
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  NOTE(DeviceOf(block));
  DO(WorkFill(block, kMiB, seed, stream));
  DO(WorkVerify(block, kMiB, seed, stream));
  DO(cuMemFreeAsync(block, stream));
}

}  // namespace

SCENARIO(device_of_each_context) {
  if (!TwoDevices()) return;
  CUstream stream[2];
  CUdeviceptr block[2] = {};
  for (int device : {0, 1}) {
    PrimaryContext(device);
    stream[device] = NewStream();
    DO(cuMemAlloc(&block[device], kMiB));
    NOTE(DeviceOf(block[device]));
    UseOn(stream[device], device);
    UseOn(nullptr, device);
    CheckInfo(kMiB);
  }
  UseOn(stream[0], 3);  // the other device's context is current
  UseOn(stream[1], 4);
  DO(cuMemFree(block[0]));
  DO(cuMemFree(block[1]));
  CheckBytes();
  for (int device : {0, 1}) {
    PrimaryContext(device);
    DO(cuStreamSynchronize(stream[device]));
    DO(cuStreamDestroy(stream[device]));
  }
}

// A buffer's id is its own among all of the process.
SCENARIO(device_of_a_buffer_by_its_id) {
  if (!TwoDevices()) return;
  std::vector<unsigned long long> ids;
  for (int device : {0, 1}) {
    PrimaryContext(device);
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      unsigned long long id = 0;
      DO(cuMemAllocAsync(&block, kMiB, nullptr));
      DO(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
      NOTE(std::count(ids.begin(), ids.end(), id));
      ids.push_back(id);
    }
  }
}

// The pool says where a block comes from, not the stream.
SCENARIO(device_of_a_pool) {
  if (!TwoDevices()) return;
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, kMiB, DefaultPool(1), stream));
  NOTE(DeviceOf(block));
  DO(cuMemFreeAsync(block, stream));
  DO(cuMemAllocFromPoolAsync(&block, kMiB, DefaultPool(0), stream));
  NOTE(DeviceOf(block));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Blocks that another device may use after the pool, or the contexts, are opened to it.
SCENARIO(device_that_is_a_peer) {
  if (!TwoDevices()) return;
  int can = 0;
  DO(cuDeviceCanAccessPeer(&can, 1, 0));
  NOTE(can);
  if (can == 0) return;
  const CUstream stream = NewStream();
  CUdeviceptr before = 0;
  CUdeviceptr after = 0;
  DO(cuMemAllocAsync(&before, kMiB, stream));
  DO(WorkFill(before, kMiB, 1, stream));
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DO(cuMemPoolSetAccess(DefaultPool(0), &access, 1));
  DO(cuMemAllocAsync(&after, 40 * kMiB, stream));  // memory that is added only now
  DO(WorkFill(after, 40 * kMiB, 2, stream));
  DO(cuStreamSynchronize(stream));
  PrimaryContext(1);
  const CUstream peer = NewStream();
  DO(WorkVerify(before, kMiB, 1, peer));
  DO(WorkVerify(after, 40 * kMiB, 2, peer));
  DO(WorkFill(after, 40 * kMiB, 3, peer));
  DO(cuStreamSynchronize(peer));
  DO(cuCtxSetCurrent(MainContext()));
  DO(WorkVerify(after, 40 * kMiB, 3, stream));
  DO(cuMemFreeAsync(before, stream));
  DO(cuMemFreeAsync(after, stream));
  CheckBytes();
}

// What a peer was to read alone it may write as well later, memory that is added after that too.
SCENARIO(device_that_is_a_peer_which_may_write_later) {
  if (!TwoDevices()) return;
  const CUstream stream = NewStream();
  CUdeviceptr before = 0;
  CUdeviceptr after = 0;
  DO(cuMemAllocAsync(&before, kMiB, stream));
  for (const auto flags : {CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, flags};
    DO(cuMemPoolSetAccess(DefaultPool(0), &access, 1));
  }
  DO(cuMemAllocAsync(&after, 40 * kMiB, stream));
  DO(cuStreamSynchronize(stream));
  PrimaryContext(1);
  const CUstream peer = NewStream();
  DO(WorkFill(before, kMiB, 1, peer));
  DO(WorkFill(after, 40 * kMiB, 2, peer));
  DO(cuStreamSynchronize(peer));
  DO(cuCtxSetCurrent(MainContext()));
  DO(WorkVerify(before, kMiB, 1, stream));
  DO(WorkVerify(after, 40 * kMiB, 2, stream));
  DO(cuMemFreeAsync(before, stream));
  DO(cuMemFreeAsync(after, stream));
  CheckBytes();
}

// The pool is opened before anything has been asked of it, as start-up code does.
SCENARIO(device_that_is_a_peer_before_it_is_used) {
  if (!TwoDevices()) return;
  if (DO(LetTheOtherUseThePool()) != CUDA_SUCCESS) return;
  const CUstream stream = NewStream();
  const CUdeviceptr block = FilledOn(stream);
  PrimaryContext(1);
  const CUstream peer = NewStream();
  DO(WorkVerify(block, kMiB, 1, peer));
  DO(cuStreamSynchronize(peer));
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
}

namespace {

// A peer reads a block once `let` has let it: whoever is refused asks again.
template <typename Let>
void ReadByAPeer(Let let) {
  if (!TwoDevices()) return;
  const CUstream stream = NewStream();
  const CUdeviceptr block = FilledOn(stream);
  PrimaryContext(1);
  for (int tries = 0; tries < 3 && let() != CUDA_SUCCESS;) ++tries;
  DO(LetTheOtherUseThePool());
  const CUstream peer = NewStream();
  DO(WorkVerify(block, kMiB, 1, peer));
  DO(cuStreamSynchronize(peer));
  DO(let());  // not again
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
}

}  // namespace

SCENARIO(device_that_is_a_peer_of_a_pool_when_asked_again) { ReadByAPeer(LetTheOtherUseThePool); }

SCENARIO(device_that_is_a_peer_of_contexts_when_asked_again) {
  ReadByAPeer([] { return cuCtxEnablePeerAccess(MainContext(), 0); });
}

// Nothing but its context lets a peer read a synchronous block. Who is refused that asks again.
SCENARIO(device_that_is_a_peer_of_synchronous_blocks_when_asked_again) {
  if (!TwoDevices()) return;
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, kMiB));
  DO(WorkFill(block, kMiB, 1, nullptr));
  DO(cuCtxSynchronize());
  PrimaryContext(1);
  CUresult allowed = CUDA_ERROR_UNKNOWN;
  for (int tries = 0; tries < 3 && allowed != CUDA_SUCCESS; ++tries) {
    allowed = cuCtxEnablePeerAccess(MainContext(), 0);
  }
  NOTE(allowed);
  if (allowed != CUDA_SUCCESS && allowed != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return;
  const CUstream peer = NewStream();
  DO(WorkVerify(block, kMiB, 1, peer));
  DO(cuStreamSynchronize(peer));
  DO(cuCtxEnablePeerAccess(MainContext(), 0));  // not again
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemFree(block));
  CheckBytes();
}

// A stream says where a large block lies, not what is current.
SCENARIO_ALONE(device_that_is_not_current_and_large_blocks) {
  if (!TwoDevices()) return;
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 1));
  PrimaryContext(1);
  const CUstream stream = NewStream();
  DO(cuCtxSetCurrent(MainContext()));
  for (int i = 0; i < 2; ++i) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, total / 4 * 3, stream));
    NOTE(DeviceOf(block));
    DO(WorkFill(block, kMiB, i, stream));
    DO(WorkVerify(block, kMiB, i, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemPoolTrimTo(DefaultPool(1), 0));
  }
  CheckBytes();
}

// What is free of the pool's device is had again, whichever device's stream asks.
SCENARIO_ALONE(device_of_a_pool_that_has_been_full) {
  if (!TwoDevices()) return;
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 1));
  const CUstream stream = NewStream();
  PrimaryContext(1);
  CUdeviceptr block = 0;
  const CUstream own = NewStream();
  DO(cuMemAllocAsync(&block, total / 4 * 3, own));
  DO(cuMemFreeAsync(block, own));
  DO(cuStreamSynchronize(own));
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemAllocFromPoolAsync(&block, total / 4 * 3, DefaultPool(1), stream));
  NOTE(DeviceOf(block));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  CheckBytes();
}

// A block of one device that another device's stream reads, and frees: it may not be used again before. Several times,
// as what runs first is left to chance.
SCENARIO(device_of_another_stream_frees) {
  if (!TwoDevices()) return;
  const CUstream own = NewStream();
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DO(cuMemPoolSetAccess(DefaultPool(0), &access, 1));
  PrimaryContext(1);
  const CUstream other = NewStream();
  for (int i = 0; i < 10; ++i) {
    DO(cuCtxSetCurrent(MainContext()));
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, kMiB, own));
    DO(WorkFill(block, kMiB, 1, own));
    DO(cuStreamSynchronize(own));
    DO(WorkVerify(block, kMiB, 1, other));
    DO(cuMemFreeAsync(block, other));
    CUdeviceptr next = 0;
    DO(cuMemAllocAsync(&next, kMiB, own));
    DO(WorkFill(next, kMiB, 2, own));
    DO(cuStreamSynchronize(own));  // before what the other device was told to read, if nothing holds it back
    DO(cuStreamSynchronize(other));
    DO(cuMemFreeAsync(next, own));
  }
  CUcontext current = nullptr;
  DO(cuCtxGetCurrent(&current));
  NOTE(current == MainContext());
  CheckBytes();
}

// Each context has a default stream of its own, and neither waits for the other's.
SCENARIO(contexts_whose_default_streams_take_turns) {
  const CUcontext second = NewContext(0);
  for (int i = 0; i < 20; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr next[3] = {};
    cuCtxSetCurrent(MainContext());
    cuMemAllocAsync(&block, 4 * kMiB, nullptr);
    for (int k = 0; k < 60; ++k) WorkFill(block, 4 * kMiB, k, nullptr);
    cuMemFreeAsync(block, nullptr);
    cuCtxSetCurrent(second);
    for (CUdeviceptr& each : next) {
      cuMemAllocAsync(&each, 4 * kMiB, nullptr);
      WorkFill(each, 4 * kMiB, 1000 + i, nullptr);
    }
    cuCtxSynchronize();
    cuCtxSetCurrent(MainContext());
    cuCtxSynchronize();
    cuCtxSetCurrent(second);
    for (const CUdeviceptr each : next) {
      WorkVerify(each, 4 * kMiB, 1000 + i, nullptr);
      cuMemFreeAsync(each, nullptr);
    }
    cuCtxSynchronize();
  }
  CheckBytes();
  DO(cuCtxDestroy(second));
  DO(cuCtxSetCurrent(MainContext()));
}

SCENARIO(device_that_is_a_peer_of_contexts) {
  if (!TwoDevices()) return;
  CUdeviceptr before = 0;
  CUdeviceptr after = 0;
  DO(cuMemAlloc(&before, kMiB));
  const CUcontext second = PrimaryContext(1);
  const CUstream peer = NewStream();
  DO(cuCtxEnablePeerAccess(MainContext(), 0));
  DO(cuCtxEnablePeerAccess(MainContext(), 0));  // already
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemAlloc(&after, 40 * kMiB));
  DO(WorkFill(before, kMiB, 1, nullptr));
  DO(WorkFill(after, 40 * kMiB, 2, nullptr));
  DO(cuCtxSynchronize());
  DO(cuCtxSetCurrent(second));
  DO(WorkVerify(before, kMiB, 1, peer));
  DO(WorkVerify(after, 40 * kMiB, 2, peer));
  CheckBytes();
  DO(cuCtxDisablePeerAccess(MainContext()));
  DO(cuCtxDisablePeerAccess(MainContext()));  // no more
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemFree(before));
  DO(cuMemFree(after));
  CheckBytes();
}

SCENARIO(contexts_of_one_device) {
  const CUcontext second = NewContext(0);
  const CUstream in_second = NewStream();
  DO(cuCtxSetCurrent(MainContext()));
  const CUstream in_first = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, in_second));
  DO(WorkFill(block, kMiB, 1, in_second));
  DO(WorkVerify(block, kMiB, 1, in_second));
  const CUevent done = NewEvent();
  DO(cuStreamSynchronize(in_second));
  DO(cuEventRecord(done, in_first));
  DO(cuMemFreeAsync(block, in_first));
  UseOn(in_first, 2);
  UseOn(in_second, 3);
  CheckBytes();
  DO(cuCtxDestroy(second));
  UseOn(in_first, 4);
  CheckBytes();
}

// Beside a capture nobody can be waited for, and the order of a stream that is new then is not known: what it has still to do
// is waited for later, where it is in another context than the block it frees, and where that one's has ended.
SCENARIO(contexts_of_one_device_and_frees_beside_a_capture) {
  const CUstream own = NewStream();
  const CUstream captured = NewStream();
  const CUcontext contexts[] = {MainContext(), NewContext(0)};
  for (int i = 0; i < kContexts; ++i) {
    DO(cuCtxSetCurrent(contexts[0]));
    const CUcontext gone = i % 2 == 0 ? NewContext(0) : nullptr;
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, kMiB, NewStream()));
    DO(cuCtxSynchronize());
    if (gone != nullptr) DO(cuCtxDestroy(gone));
    DO(cuCtxSetCurrent(contexts[i % 2]));
    const CUstream user = NewStream();
    DO(WorkFill(block, kMiB, i, user));
    for (int k = 0; k < 20; ++k) WorkVerify(block, kMiB, i, user);
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    DO(cuMemFreeAsync(block, user));
    EndCapture(captured);
    CUdeviceptr next[3] = {};
    for (CUdeviceptr& each : next) cuMemAllocAsync(&each, kMiB, own);
    for (const CUdeviceptr each : next) WorkFill(each, kMiB, 1000 + i, own);
    DO(cuStreamSynchronize(own));
    for (const CUdeviceptr each : next) cuMemFreeAsync(each, own);
    DO(cuStreamSynchronize(user));
  }
  CheckBytes();
  DO(cuCtxDestroy(contexts[1]));
  DO(cuCtxSetCurrent(contexts[0]));
}

SCENARIO(stream_handles_with_a_meaning) {
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    UseOn(stream, 5);
    Train({stream, /*synchronous=*/false, 20});
  }
  CheckBytes();
}

// Each context has default streams of its own, by the same handles: what one does is not in the other's order.
SCENARIO(stream_handles_that_mean_another_in_each_context) {
  const CUcontext contexts[] = {MainContext(), NewContext(0)};
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    for (int i = 0; i < 20; ++i) {
      DO(cuCtxSetCurrent(contexts[i % 2]));
      CUdeviceptr block = 0;
      cuMemAllocAsync(&block, kMiB, stream);
      for (int k = 0; k < 20; ++k) {
        WorkFill(block, kMiB, 100 * i + k, stream);
        WorkVerify(block, kMiB, 100 * i + k, stream);
      }
      cuMemFreeAsync(block, stream);
    }
  }
  CheckBytes();
  DO(cuCtxDestroy(contexts[1]));
  DO(cuCtxSetCurrent(MainContext()));
  CheckBytes();
}

// The legacy default stream waits for blocking streams, and they for it.
SCENARIO(stream_that_blocks) {
  CUstream blocking = nullptr;
  DO(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  for (int i = 0; i < 50; ++i) {
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, 2 * kMiB, blocking);
    WorkFill(block, 2 * kMiB, i, blocking);
    WorkVerify(block, 2 * kMiB, i, nullptr);
    cuMemFreeAsync(block, nullptr);
    cuMemAllocAsync(&block, 2 * kMiB, nullptr);
    WorkFill(block, 2 * kMiB, i, nullptr);
    WorkVerify(block, 2 * kMiB, i, blocking);
    cuMemFreeAsync(block, blocking);
  }
  CheckBytes();
  DO(cuStreamDestroy(blocking));
}

// What one pool lets a peer do, another does not take from it.
SCENARIO(device_that_is_a_peer_of_two_pools) {
  if (!TwoDevices()) return;
  const CUstream stream = NewStream();
  CUmemPoolProps props = PlainPool(0);
  CUmemoryPool written = nullptr;
  CUmemoryPool read = nullptr;
  DO(cuMemPoolCreate(&written, &props));
  DO(cuMemPoolCreate(&read, &props));
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DO(cuMemPoolSetAccess(written, &access, 1));
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, kMiB, written, stream));
  DO(cuStreamSynchronize(stream));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  DO(cuMemPoolSetAccess(read, &access, 1));
  PrimaryContext(1);
  const CUstream peer = NewStream();
  DO(WorkFill(block, kMiB, 1, peer));
  DO(WorkVerify(block, kMiB, 1, peer));
  DO(cuStreamSynchronize(peer));
  DO(cuStreamDestroy(peer));
  DO(cuCtxSetCurrent(MainContext()));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuMemPoolDestroy(written));
  DO(cuMemPoolDestroy(read));
  DO(cuStreamDestroy(stream));
}

namespace {

// `second`, of the other device, reads each block until its free. `ends`: unless the driver refuses (it is told to fail
// by the test), it is destroyed before.
void FreeWhatAPeerReads(CUcontext second, bool ends = false) {
  const CUstream peer = NewStream();
  DO(cuCtxEnablePeerAccess(MainContext(), 0));
  if (ends && DO(cuCtxDestroy(second)) == CUDA_SUCCESS) return;
  DO(cuCtxSetCurrent(MainContext()));
  const CUstream stream = NewStream();
  for (int i = 0; i < 40; ++i) {
    CUdeviceptr block = 0;
    cuMemAlloc(&block, 700 * kKiB);
    WorkFill(block, 700 * kKiB, i, stream);
    cuCtxSynchronize();
    cuCtxSetCurrent(second);
    WorkVerify(block, 700 * kKiB, i, peer);
    cuCtxSetCurrent(MainContext());
    cuMemFree(block);
    cuMemAlloc(&block, 700 * kKiB);
    WorkFill(block, 700 * kKiB, 1000 + i, stream);
    cuCtxSynchronize();
    cuMemFree(block);
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
  DO(cuCtxSetCurrent(second));
  DO(cuStreamSynchronize(peer));
  CheckBytes();
  DO(cuStreamDestroy(peer));
  DO(cuCtxDisablePeerAccess(MainContext()));
}

}  // namespace

// A synchronous free waits for the peers that use the block as well.
SCENARIO(device_that_is_a_peer_until_the_free) {
  if (TwoDevices()) FreeWhatAPeerReads(PrimaryContext(1));
}

SCENARIO(device_that_is_a_peer_by_a_context_of_its_own_until_the_free) {
  if (!TwoDevices()) return;
  const CUcontext second = NewContext(1);
  FreeWhatAPeerReads(second);
  DO(cuCtxDestroy(second));
}

SCENARIO(device_that_is_a_peer_whose_end_is_refused) {
  if (TwoDevices()) FreeWhatAPeerReads(NewContext(1), /*ends=*/true);
}

// A thread's free waits for peers, any of which may end meanwhile.
SCENARIO(contexts_that_end_beside_a_thread_that_frees) {
  if (!TwoDevices()) return;
  std::atomic<bool> over{false};
  int failed = 0;
  std::thread frees([&] {
    cuCtxSetCurrent(MainContext());
    while (!over) {
      CUdeviceptr block = 0;
      if (cuMemAlloc(&block, kMiB) != 0 || cuMemFree(block) != 0) ++failed;
    }
  });
  for (int i = 0; i < kContexts; ++i) {
    const CUcontext context = NewContext(1);
    cuCtxEnablePeerAccess(MainContext(), 0);
    cuCtxSynchronize();  // where it is slow, the other thread comes to a free
    cuCtxDestroy(context);
  }
  over = true;
  frees.join();
  NOTE(failed);
  DO(cuCtxSetCurrent(MainContext()));
  CheckBytes();
}

// A thread looks for memory of a device, in whatever context that has one.
SCENARIO(contexts_that_end_beside_a_thread_without_memory) {
  if (!TwoDevices()) return;
  std::atomic<bool> over{false};
  int found = 0;
  std::thread maps([&] {
    cuCtxSetCurrent(MainContext());
    size_t total = 0;
    cuDeviceTotalMem(&total, 1);
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemGenericAllocationHandle handle = 0;
    while (!over) found += cuMemCreate(&handle, 2 * total, &prop, 0) != CUDA_ERROR_OUT_OF_MEMORY;
  });
  for (int i = 0; i < kContexts; ++i) {
    const CUcontext context = NewContext(1);
    const CUstream stream = NewStream();
    CUdeviceptr block = 0;
    cuMemAllocAsync(&block, kMiB, stream);
    cuMemFreeAsync(block, stream);
    cuCtxSynchronize();  // where it is slow, the other thread has found this one
    cuCtxDestroy(context);
  }
  over = true;
  maps.join();
  NOTE(found);
  DO(cuCtxSetCurrent(MainContext()));
  CheckBytes();
}

// The stream says where memory comes from, whatever is current.
SCENARIO(device_that_is_not_current_in_training) {
  if (!TwoDevices()) return;
  PrimaryContext(1);
  const CUstream stream = NewStream();
  DO(cuCtxSetCurrent(MainContext()));
  Train({stream, /*synchronous=*/false, 60});
  UseOn(stream, 1);
  DO(cuStreamSynchronize(stream));
  CheckBytes();
  PrimaryContext(1);
  DO(cuStreamDestroy(stream));
}
