// The end of memory: the same requests fail and succeed as without us, and afterwards all goes on.
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/scenarios/scenario.h"

SCENARIO_ALONE(limit_larger_than_the_device) {
  const CUstream stream = NewStream();
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 0));
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, total + kMiB));
  DO(cuMemAllocAsync(&block, total + kMiB, stream));
  DO(cuMemAlloc(&block, ~size_t{0}));
  DO(cuMemAllocAsync(&block, ~size_t{0}, stream));
  DO(cuMemAlloc(&block, ~size_t{0} / 2));
  DO(cuMemAllocAsync(&block, ~size_t{0} / 2, stream));
  CheckInfo(0);
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuMemAlloc(&block, kMiB));
  DO(cuMemFree(block));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Each is larger than what has just been freed, and does not wait for more memory than there was, but for the device.
SCENARIO(limit_of_what_is_held_while_the_device_is_behind) {
  constexpr int kBlocks = 16;
  const CUstream stream = NewStream();
  CUdeviceptr kept[kBlocks] = {};
  for (int i = 0; i < kBlocks; ++i) {
    const size_t bytes = (i + 1) * 4 * kMiB;
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, bytes, stream));
    DO(cuMemAllocAsync(&kept[i], kMiB, stream));  // so that what is freed does not grow
    DO(WorkFill(kept[i], kMiB, 100 + i, stream));
    DO(WorkFill(block, bytes, i, stream));
    DO(WorkVerify(block, bytes, i, stream));
    DO(cuMemFreeAsync(block, stream));
  }
  for (int i = 0; i < kBlocks; ++i) {
    DO(WorkVerify(kept[i], kMiB, 100 + i, stream));
    DO(cuMemFreeAsync(kept[i], stream));
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

#ifndef __CUDACC__

// Others on the device may want what is free: nothing is taken for a request that cannot be met.
SCENARIO(limit_that_nothing_is_taken_for) {
  const CUstream stream = NewStream();
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 0));
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  simResetPeakPhysicalBytes(0);
  DO(cuMemAllocAsync(&block, total + kMiB, stream));
  NOTE(simPeakPhysicalBytes(0) < total / 8);
  DO(cuStreamDestroy(stream));
}

#endif

// Three quarters of the device are taken: another half does not fit, a small block does.
SCENARIO_ALONE(limit_then_smaller) {
  const CUstream stream = NewStream();
  const size_t quarter = DeviceBytes() / 4 / kMiB * kMiB;
  CUdeviceptr block[3] = {};
  CUdeviceptr more = 0;
  for (CUdeviceptr& each : block) DO(cuMemAllocAsync(&each, quarter, stream));
  CheckInfo(3 * quarter);
  DO(cuMemAllocAsync(&more, 2 * quarter, stream));
  DO(cuMemAlloc(&more, 2 * quarter));
  DO(cuMemAllocAsync(&more, 8 * kMiB, stream));
  DO(WorkFill(more, 8 * kMiB, 1, stream));
  DO(WorkVerify(more, 8 * kMiB, 1, stream));
  DO(cuMemFreeAsync(more, stream));
  for (const CUdeviceptr each : block) DO(cuMemFreeAsync(each, stream));
  DO(cuStreamSynchronize(stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// What was freed by one kind of call is there for the other, whoever holds it meanwhile.
SCENARIO_ALONE(limit_from_async_to_synchronous) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 4 * 3 / kMiB * kMiB;
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, most, stream));
    DO(WorkFill(block, kMiB, i, stream));
    DO(WorkVerify(block, kMiB, i, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    CheckInfo(0);
    DO(cuMemAlloc(&block, most));
    CheckInfo(most);
    DO(cuMemFree(block));
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// The same with another stream, once the frees of the first are over.
SCENARIO_ALONE(limit_from_stream_to_stream) {
  const CUstream stream[] = {NewStream(), NewStream()};
  const size_t most = DeviceBytes() / 4 * 3 / kMiB * kMiB;
  for (int i = 0; i < 4; ++i) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, most, stream[i % 2]));
    DO(WorkFill(block, kMiB, i, stream[i % 2]));
    DO(WorkVerify(block, kMiB, i, stream[i % 2]));
    DO(cuMemFreeAsync(block, stream[i % 2]));
    DO(cuStreamSynchronize(stream[i % 2]));
  }
  CheckBytes();
  for (const CUstream each : stream) DO(cuStreamDestroy(each));
}

// The same, and more, while they are not: who is given it has waited.
SCENARIO_ALONE(limit_from_a_stream_whose_work_goes_on) {
  const CUstream stream[] = {NewStream(), NewStream()};
  const size_t eighth = DeviceBytes() / 8 / kMiB * kMiB;
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, 6 * eighth, stream[0]));
  for (int k = 0; k < 100; ++k) WorkFill(block, kMiB, k, stream[0]);
  DO(cuMemFreeAsync(block, stream[0]));
  if (cuMemAllocAsync(&block, 7 * eighth, stream[1]) == CUDA_SUCCESS) {
    WorkFill(block, kMiB, 1000, stream[1]);
    cuStreamSynchronize(stream[1]);
    cuCtxSynchronize();
    WorkVerify(block, kMiB, 1000, stream[1]);
    cuMemFreeAsync(block, stream[1]);
  }
  CheckBytes();
  for (const CUstream each : stream) DO(cuStreamDestroy(each));
}

namespace {

// Virtual memory of the program's own needs what an allocator holds unused.
void MapWhatIsUnused(CUmemLocation location) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 4 * 3 / (2 * kMiB) * (2 * kMiB);
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, most, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = location;
  CUmemGenericAllocationHandle handle = 0;
  if (DO(cuMemCreate(&handle, most, &prop, 0)) == 0) DO(cuMemRelease(handle));
  DO(cuStreamDestroy(stream));
}

}  // namespace

SCENARIO_ALONE(limit_from_async_to_virtual_memory) { MapWhatIsUnused({CU_MEM_LOCATION_TYPE_DEVICE, 0}); }

// A part of a device can be named from CUDA 13.5 on (CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN): the device in the first
// byte, the part in the next.
SCENARIO_ALONE(limit_from_async_to_virtual_memory_of_a_part) {
  CUmemLocation part = {};
  part.type = static_cast<CUmemLocationType>(6);
  reinterpret_cast<unsigned char*>(&part.id)[1] = 1;
  MapWhatIsUnused(part);
}

// What a training will need again in its next round is there for all else between two.
SCENARIO_ALONE(limit_between_trainings) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 16 * 15 / (2 * kMiB) * (2 * kMiB);
  CUdeviceptr block = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  Train({stream, /*synchronous=*/false, 60});
  DO(cuMemAlloc(&block, most));
  DO(cuMemFree(block));
  Train({stream, /*synchronous=*/false, 5});
  if (DO(cuMemCreate(&handle, most, &prop, 0)) == CUDA_SUCCESS) DO(cuMemRelease(handle));
  Train({stream, /*synchronous=*/false, 5});
  const CUmemoryPool pool = NewPool(0, 2 * most);  // with a limit: the driver's
  DO(cuMemAllocFromPoolAsync(&block, most, pool, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(pool));
  Train({stream, /*synchronous=*/false, 5});
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

namespace {

// What a small device (64 MiB) has where nothing else holds any of it, in both ways.
void TakeNearlyAll(CUstream stream) {
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, 60 * kMiB));
  DO(cuMemFree(block));
  DO(cuMemAllocAsync(&block, 60 * kMiB, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
}

}  // namespace

// Most of a small device (64 MiB) after another most of it, with streams in between that come and go.
SCENARIO(limit_after_many_streams) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  for (int i = 0; i < 3; ++i) {
    DO(cuMemAllocAsync(&block, 48 * kMiB, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
  }
  for (int i = 0; i < 64; ++i) {
    const CUstream other = NewStream();
    DO(cuMemAllocAsync(&block, 4 * kKiB, other));
    DO(cuMemFreeAsync(block, other));
    DO(cuStreamSynchronize(other));
    DO(cuStreamDestroy(other));
  }
  TakeNearlyAll(stream);
  DO(cuStreamDestroy(stream));
}

// A small device (64 MiB) has only a part of what is asked for: that part comes back.
SCENARIO(limit_of_a_request_that_is_met_in_part) {
  const CUstream stream = NewStream();
  CUdeviceptr block = 0;
  CUdeviceptr more = 0;
  DO(cuMemAllocAsync(&block, 40 * kMiB, stream));
  if (DO(cuMemAllocAsync(&more, 40 * kMiB, stream)) == CUDA_SUCCESS) DO(cuMemFreeAsync(more, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  TakeNearlyAll(stream);
  DO(cuStreamDestroy(stream));
}

// Threads that together never want more than a small device has (112 MiB), each in all three ways: what one gives up
// another finds, whoever holds it by then.
SCENARIO(limit_that_threads_share) {
  constexpr size_t kBytes = 14 * kMiB;
#ifdef __CUDACC__
  constexpr int kRounds = 40;  // a GPU takes milliseconds for one
#else
  constexpr int kRounds = 300;
#endif
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      cuCtxSetCurrent(MainContext());
      const CUstream stream = NewStream();
      std::minstd_rand random(thread);
      for (int i = 0; i < kRounds; ++i) {
        const auto hold = [&] {
          std::this_thread::sleep_for(std::chrono::microseconds(100 + random() % 300));
        };
        CUdeviceptr block = 0;
        CUmemGenericAllocationHandle handle = 0;
        bool ok = false;
        switch (random() % 3) {
          case 0:
            ok = cuMemAllocAsync(&block, kBytes, stream) == CUDA_SUCCESS;
            hold();
            ok = ok && cuMemFreeAsync(block, stream) == CUDA_SUCCESS;
            cuStreamSynchronize(stream);
            break;
          case 1:
            ok = cuMemAlloc(&block, kBytes) == CUDA_SUCCESS;
            hold();
            ok = ok && cuMemFree(block) == CUDA_SUCCESS;
            break;
          default:
            ok = cuMemCreate(&handle, kBytes, &prop, 0) == CUDA_SUCCESS;
            hold();
            ok = ok && cuMemRelease(handle) == CUDA_SUCCESS;
        }
        failed += ok ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  NOTE(failed);
}

// Fills the device with small blocks until nothing fits: about as much must fit as without us.
SCENARIO_ALONE(limit_of_many_small_blocks) {
  const CUstream stream = NewStream();
  const size_t bytes = DeviceBytes() / 64 / kMiB * kMiB;
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  int result = 0;
  while (blocks.size() < 1000 && (result = cuMemAllocAsync(&block, bytes, stream)) == 0)
    blocks.push_back(block);
  NOTE(result);
  NOTE(blocks.size() >= 60);
  for (const CUdeviceptr each : blocks) cuMemFreeAsync(each, stream);
  DO(cuStreamSynchronize(stream));
  CheckInfo(0);
  DO(cuMemAllocAsync(&block, 32 * bytes, stream));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// One block in eight stays, all over what was held: the memory that is said to be free can be had nevertheless.
SCENARIO_ALONE(limit_of_what_is_said_to_be_free) {
  const CUstream stream = NewStream();
  const size_t each = 256 * kKiB;
  std::vector<CUdeviceptr> blocks(DeviceBytes() / 8 / each);
  bool all = true;
  for (CUdeviceptr& block : blocks) all &= cuMemAllocAsync(&block, each, stream) == CUDA_SUCCESS;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 8 != 0) all &= cuMemFreeAsync(blocks[i], stream) == CUDA_SUCCESS;
  }
  NOTE(all);
  DO(cuCtxSynchronize());
  size_t unused = 0;
  size_t total = 0;
  DO(cuMemGetInfo(&unused, &total));
  CUdeviceptr rest = 0;
  DO(cuMemAlloc(&rest, unused / 100 * 95));
  DO(cuMemFree(rest));
  for (size_t i = 0; i < blocks.size(); i += 8) all &= cuMemFreeAsync(blocks[i], stream) == CUDA_SUCCESS;
  NOTE(all);
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// Takes three quarters of the device and gives them back: whoever keeps them has them unused.
static void TakeAndGiveBack(CUstream stream) {
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, DeviceBytes() / 4 * 3, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
}

static std::string TextOfAModule(size_t bytes) {
  return ".version 7.8\n.target sm_80\n.address_size 64\n.visible .global .align 8 .b8 table[" +
         std::to_string(bytes) + "];\n";
}

// The driver's own allocations: a module's variables,
SCENARIO_ALONE(limit_from_async_to_a_module) {
  const CUstream stream = NewStream();
  const std::string text = TextOfAModule(DeviceBytes() / 8 * 5);
  CUmodule module = nullptr;
  TakeAndGiveBack(stream);
  DO(cuModuleLoadData(&module, text.c_str()));
  DO(cuModuleUnload(module));
  DO(cuStreamDestroy(stream));
}

// with the options of its compilation, one of which tells how large the log may be, and then how much of that was filled, and
SCENARIO_ALONE(limit_from_async_to_a_module_with_a_log) {
  const CUstream stream = NewStream();
  const std::string text = TextOfAModule(DeviceBytes() / 8 * 5);
  CUmodule module = nullptr;
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {reinterpret_cast<void*>(1), log, reinterpret_cast<void*>(sizeof log)};
  TakeAndGiveBack(stream);
  DO(cuModuleLoadDataEx(&module, text.c_str(), 3, options, values));
  NOTE(reinterpret_cast<size_t>(values[2]) > 0);
  NOTE(log[0] != 0);
  DO(cuModuleUnload(module));
  DO(cuStreamDestroy(stream));
}

// those of other calls, of which a test lets one fail at a time.
SCENARIO_ALONE(limit_from_async_to_the_drivers_own) {
  const CUstream stream = NewStream();
  CUstream captured = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  TakeAndGiveBack(stream);
  DO(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DO(cuStreamEndCapture(captured, &graph));
  DO(cuGraphInstantiate(&executable, graph, 0));
  DO(cuGraphUpload(executable, captured));
  DO(cuGraphExecDestroy(executable));
  DO(cuGraphDestroy(graph));
  DO(cuStreamDestroy(captured));
  captured = nullptr;
  DO(cuStreamCreateWithPriority(&captured, CU_STREAM_NON_BLOCKING, 0));
  DO(cuStreamDestroy(captured));
  CUcontext primary = nullptr;
  if (DO(cuDevicePrimaryCtxRetain(&primary, 0)) == CUDA_SUCCESS) DO(cuDevicePrimaryCtxRelease(0));
  DO(cuStreamDestroy(stream));
}

// What stream-ordered memory keeps is there for rows, too.
SCENARIO_ALONE(limit_from_async_to_rows) {
  const CUstream stream = NewStream();
  const size_t most = DeviceBytes() / 4 * 3 / kMiB * kMiB;
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, most, stream));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  size_t pitch = 0;
  DO(cuMemAllocPitch(&block, &pitch, kMiB, most / kMiB, 16));
  DO(cuMemFree(block));
  DO(cuStreamDestroy(stream));
}

// What the driver has to serve it cannot serve from elsewhere: blocks of a process that exports some.
SCENARIO_ALONE(limit_of_a_process_that_exports) {
  CUdeviceptr exported = 0;
  CUdeviceptr block[2] = {};
  CUipcMemHandle handle;
  DO(cuMemAlloc(&exported, 2 * kMiB));
  DO(cuIpcGetMemHandle(&handle, exported));
  for (CUdeviceptr& each : block) DO(cuMemAlloc(&each, DeviceBytes() / 8 * 5));
  DO(cuMemFree(block[0]));
  DO(cuMemFree(exported));
}

SCENARIO_ALONE(limit_of_a_pool_that_is_exported) {
  const CUstream stream = NewStream();
  CUmemPoolProps props = PlainPool(0);
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemoryPool pool = nullptr;
  CUdeviceptr block[2] = {};
  DO(cuMemPoolCreate(&pool, &props));
  for (CUdeviceptr& each : block) DO(cuMemAllocFromPoolAsync(&each, DeviceBytes() / 8 * 5, pool, stream));
  DO(cuMemFreeAsync(block[0], stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}

namespace {

// For memory that the program maps itself on another device, whichever device's context is current. `second`
// is that device's.
void MapWhatWasFreed(CUcontext second) {
  size_t total = 0;
  DO(cuDeviceTotalMem(&total, 1));
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  size_t granularity = 0;
  DO(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const size_t most = total / 4 * 3 / granularity * granularity;
  const CUstream stream = NewStream();
  for (const CUcontext current : {MainContext(), CUcontext{}, second}) {
    DO(cuCtxSetCurrent(second));
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, most, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemPoolTrimTo(DefaultPool(1), 0));
    DO(cuMemAllocAsync(&block, most, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuCtxSetCurrent(current));
    CUmemGenericAllocationHandle handle = 0;
    if (DO(cuMemCreate(&handle, most, &prop, 0)) == CUDA_SUCCESS) DO(cuMemRelease(handle));
  }
  DO(cuCtxSetCurrent(MainContext()));
}

}  // namespace

SCENARIO_ALONE(limit_from_async_to_memory_of_another_device) {
  if (TwoDevices()) MapWhatWasFreed(PrimaryContext(1));
}

SCENARIO_ALONE(limit_from_async_to_memory_of_a_device_without_its_primary_context) {
  if (TwoDevices()) MapWhatWasFreed(NewContext(1));
}
