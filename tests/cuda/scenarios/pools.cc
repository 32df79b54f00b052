// Pools: their attributes, pools of the program's own.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/cuda/scenarios/scenario.h"

namespace {

struct Use {
  cuuint64_t reserved, reserved_high, used, used_high;
};

Use UseOf(CUmemoryPool pool) {
  return {PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
          PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
          PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
          PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH)};
}

// What PyTorch and RMM take for granted, where `live` bytes have been handed out.
void CheckUse(CUmemoryPool pool, size_t live) {
  const Use use = UseOf(pool);
  NOTE(live);
  NOTE(use.used == live);
  NOTE(use.used >= live);
  NOTE(use.used_high >= use.used);
  NOTE(use.reserved >= use.used);
  NOTE(use.reserved_high >= use.reserved);
  NOTE(use.reserved_high >= use.used_high);
}

void ResetHigh(CUmemoryPool pool) {
  cuuint64_t zero = 0;
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  const Use use = UseOf(pool);
  NOTE(use.reserved_high == use.reserved);
  NOTE(use.used_high == use.used);
}

}  // namespace

SCENARIO(pool_attributes) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  CUdeviceptr block[3] = {};
  CheckUse(pool, 0);
  ResetHigh(pool);
  for (int i = 0; i < 3; ++i) {
    DO(cuMemAllocAsync(&block[i], (i + 1) * kMiB, stream));
    CheckUse(pool, (i + 1) * (i + 2) / 2 * kMiB);
  }
  for (int i = 0; i < 3; ++i) DO(cuMemFreeAsync(block[i], stream));
  DO(cuStreamSynchronize(stream));
  CheckUse(pool, 0);
  NOTE(UseOf(pool).used_high == 6 * kMiB);
  NOTE(UseOf(pool).reserved_high >= 6 * kMiB);
  ResetHigh(pool);
  NOTE(UseOf(pool).used_high);
  DO(cuMemAllocAsync(&block[0], kMiB, stream));
  NOTE(UseOf(pool).used_high == kMiB);
  DO(cuMemFreeAsync(block[0], stream));
  DO(cuStreamDestroy(stream));
}

SCENARIO(pool_attributes_with_bad_arguments) {
  const CUmemoryPool pool = DefaultPool(0);
  cuuint64_t value = 5;
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  DO(cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(999), &value));
  DO(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(999), &value));
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, nullptr));
}

SCENARIO(pool_settings_are_kept) {
  const CUmemoryPool pool = DefaultPool(0);
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    int value = -1;
    DO(cuMemPoolGetAttribute(pool, attribute, &value));
    NOTE(value);
    value = 0;
    DO(cuMemPoolSetAttribute(pool, attribute, &value));
    value = -1;
    DO(cuMemPoolGetAttribute(pool, attribute, &value));
    NOTE(value);
  }
  cuuint64_t threshold = 77;
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  NOTE(threshold);
  threshold = ~cuuint64_t{0};
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  threshold = 77;
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  NOTE(threshold == ~cuuint64_t{0});
}

// Each high mark is set by itself.
SCENARIO(pool_attributes_are_reset_one_by_one) {
  const CUmemoryPool pool = DefaultPool(0);
  const CUstream stream = NewStream();
  for (const auto attribute : {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH}) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, 8 * kMiB, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemPoolTrimTo(pool, 0));
    cuuint64_t zero = 0;
    DO(cuMemPoolSetAttribute(pool, attribute, &zero));
    const Use use = UseOf(pool);
    NOTE(use.reserved_high >= 8 * kMiB);
    NOTE(use.used_high >= 8 * kMiB);
  }
  DO(cuStreamDestroy(stream));
}

SCENARIO(pool_of_the_program) {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = NewPool(0);
  CUdeviceptr block = 0;
  CUdeviceptr other = 0;
  for (int i = 0; i < 4; ++i) {
    DO(cuMemAllocFromPoolAsync(&block, 3 * kMiB, pool, stream));
    DO(cuMemAllocAsync(&other, 2 * kMiB, stream));
    CheckUse(pool, 3 * kMiB);
    CUmemoryPool said = nullptr;
    DO(cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
    NOTE(said == pool);
    DO(WorkFill(block, 3 * kMiB, i, stream));
    DO(WorkFill(other, 2 * kMiB, i + 1, stream));
    DO(WorkVerify(block, 3 * kMiB, i, stream));
    DO(WorkVerify(other, 2 * kMiB, i + 1, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuMemFreeAsync(other, stream));
  }
  CheckBytes();
  ResetHigh(pool);
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}

// A pool is destroyed while a block of it lives: it stays usable, and goes with the last of them.
SCENARIO(pool_destroyed_with_a_live_block) {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = NewPool(0);
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, 3 * kMiB, pool, stream));
  DO(WorkFill(block, 3 * kMiB, 1, stream));
  DO(cuMemPoolDestroy(pool));
  DO(WorkVerify(block, 3 * kMiB, 1, stream));
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

SCENARIO(pool_with_a_limit) {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = NewPool(0, 64 * kMiB);
  CUdeviceptr block[3] = {};
  DO(cuMemAllocFromPoolAsync(&block[0], 32 * kMiB, pool, stream));
  DO(cuMemAllocFromPoolAsync(&block[1], 48 * kMiB, pool, stream));
  DO(cuMemAllocFromPoolAsync(&block[2], 16 * kMiB, pool, stream));
  for (const CUdeviceptr each : block) {
    if (each != 0) DO(cuMemFreeAsync(each, stream));
  }
  DO(cuStreamSynchronize(stream));
  DO(cuDeviceSetMemPool(0, pool));  // the limit is that of all that name no pool
  DO(cuMemAllocAsync(&block[0], 96 * kMiB, stream));
  DO(cuMemPoolDestroy(pool));
  DO(cuMemAllocAsync(&block[0], 96 * kMiB, stream));
  DO(cuMemFreeAsync(block[0], stream));
  DO(cuStreamSynchronize(stream));
  DO(cuStreamDestroy(stream));
}

// The handle of a pool that is destroyed is another's at once, which has a limit.
SCENARIO(pool_with_a_limit_beside_a_thread_that_destroys_pools) {
  std::atomic<bool> over{false};
  std::thread destroys([&] {
    const CUmemPoolProps props = PlainPool(0);
    while (!over) {
      CUmemoryPool pool = nullptr;
      cuMemPoolCreate(&pool, &props);
      cuMemPoolDestroy(pool);
    }
  });
  const CUstream stream = NewStream();
  CUmemPoolProps props = PlainPool(0);
  props.maxSize = 64 * kMiB;
  int beyond_the_limit = 0;
  int failures = 0;
  for (int i = 0; i < 100; ++i) {
    CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    if (cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS) ++failures;
    if (cuMemAllocFromPoolAsync(&block, 96 * kMiB, pool, stream) == CUDA_SUCCESS) {
      ++beyond_the_limit;
      cuMemFreeAsync(block, stream);
    }
    if (cuMemPoolDestroy(pool) != CUDA_SUCCESS) ++failures;
  }
  over = true;
  destroys.join();
  NOTE(failures);
  NOTE(beyond_the_limit);
  DO(cuStreamDestroy(stream));
}

// Another pool stands for the device: blocks come from there.
SCENARIO(pool_set_for_the_device) {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = NewPool(0);
  DO(cuDeviceSetMemPool(0, pool));
  CUmemoryPool current = nullptr;
  DO(cuDeviceGetMemPool(&current, 0));
  NOTE(current == pool);
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, 3 * kMiB, stream));
  CheckUse(pool, 3 * kMiB);
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(pool));  // the default stands for the device again
  DO(cuDeviceGetMemPool(&current, 0));
  NOTE(current == DefaultPool(0));
  DO(cuMemAllocAsync(&block, 3 * kMiB, stream));
  CheckUse(DefaultPool(0), 3 * kMiB);
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// The pool that stands for the device is now one with a limit and now one without, while another thread asks which.
SCENARIO(pool_set_for_the_device_beside_a_thread_that_allocates) {
  std::atomic<bool> over{false};
  std::thread allocates([&] {
    cuCtxSetCurrent(MainContext());
    const CUstream stream = NewStream();
    while (!over) {
      CUdeviceptr block = 0;
      cuMemAllocAsync(&block, 64 * kKiB, stream);
      cuMemFreeAsync(block, stream);
    }
    cuStreamDestroy(stream);
  });
  const CUstream stream = NewStream();
  const CUmemoryPool pool = NewPool(0, 64 * kMiB);
  int beyond_the_limit = 0;
  int failures = 0;
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    if (cuDeviceSetMemPool(0, DefaultPool(0)) != CUDA_SUCCESS) ++failures;
    if (cuMemAllocAsync(&block, kMiB, stream) != CUDA_SUCCESS) ++failures;
    if (cuMemFreeAsync(block, stream) != CUDA_SUCCESS) ++failures;
    if (cuDeviceSetMemPool(0, pool) != CUDA_SUCCESS) ++failures;
    cuStreamQuery(stream);  // where it is slow, the other thread has its answer
    for (int k = 0; k < 2; ++k) {
      if (cuMemAllocAsync(&block, 96 * kMiB, stream) != CUDA_SUCCESS) continue;
      ++beyond_the_limit;
      cuMemFreeAsync(block, stream);
    }
  }
  over = true;
  allocates.join();
  NOTE(failures);
  NOTE(beyond_the_limit);
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}

SCENARIO(pool_of_exported_memory) {
  const CUstream stream = NewStream();
  CUmemPoolProps props = PlainPool(0);
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemoryPool pool = nullptr;
  if (DO(cuMemPoolCreate(&pool, &props)) != 0) return;
  CUdeviceptr block = 0;
  CUmemPoolPtrExportData data;
  int descriptor = -1;
  DO(cuMemAllocFromPoolAsync(&block, 3 * kMiB, pool, stream));
  DO(cuMemPoolExportPointer(&data, block));  // of a pool that might be exported, and is not yet
  DO(cuMemPoolExportToShareableHandle(&descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  NOTE(descriptor >= 0);
  if (descriptor >= 0) close(descriptor);
  DO(cuMemPoolExportPointer(&data, block));
  DO(cuMemFreeAsync(block, stream));
  DO(cuMemAllocAsync(&block, 3 * kMiB, stream));
  DO(cuMemPoolExportPointer(&data, block));  // of a pool that is not exported
  DO(cuMemFreeAsync(block, stream));
  CheckBytes();
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}

namespace {

// What only a block of a pool of its kind is.
void DescribeBlockOf(const CUmemPoolProps& props, const char* kind) {
  std::printf("%s\n", kind);
  const CUstream stream = NewStream();
  CUmemoryPool pool = nullptr;
  if (DO(cuMemPoolCreate(&pool, &props)) != 0) return;
  CUdeviceptr block = 0;
  unsigned type = 0;
  unsigned managed = 77;
  unsigned decompressed = 77;
  unsigned within_reach = 77;
  CUmemPoolPtrExportData data;
  DO(cuMemAllocFromPoolAsync(&block, 3 * kMiB, pool, stream));
  DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  DO(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
  DO(cuPointerGetAttribute(&decompressed, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, block));
  DO(cuPointerGetAttribute(&within_reach, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, block));
  NOTE(type);
  NOTE(managed);
  NOTE(decompressed);
  NOTE(within_reach);
  DO(cuMemPoolExportPointer(&data, block));
  DO(cuMemFreeAsync(block, stream));
  DO(cuStreamSynchronize(stream));
  DO(cuMemPoolDestroy(pool));
  DO(cuStreamDestroy(stream));
}

}  // namespace

// Of whatever kind, they lie on the device 0, or are numbered 0.
SCENARIO(pools_of_all_kinds) {
  CUmemPoolProps plain = PlainPool(0);
  DescribeBlockOf(plain, "plain");
  CUmemPoolProps props = plain;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  DescribeBlockOf(props, "to be exported");
  props = plain;
  props.usage = 2;  // CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS, of newer headers
  DescribeBlockOf(props, "for decompression");
  props = plain;
  props.location.type = CU_MEM_LOCATION_TYPE_HOST;
  DescribeBlockOf(props, "of the host");
  props = plain;
  *reinterpret_cast<unsigned char*>(&props.usage + 1) = 1;  // gpuDirectRDMACapable, of newer headers
  DescribeBlockOf(props, "within a network card's reach");
#if CUDA_VERSION >= 13000
  props = plain;
  props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  DescribeBlockOf(props, "managed");
#endif
}

// More than can be told apart by number.
SCENARIO(pools_in_great_number) {
  const CUstream stream = NewStream();
  CUmemPoolProps props = PlainPool(0);
  int failed = 0;
  const auto check = [&](CUresult result) { failed += result != CUDA_SUCCESS; };
  for (int i = 0; i < 300; ++i) {
    CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    check(cuMemPoolCreate(&pool, &props));
    check(cuMemAllocFromPoolAsync(&block, kMiB, pool, stream));
    check(WorkFill(block, kMiB, i, stream));
    CUmemoryPool owner = nullptr;
    check(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
    failed += owner != pool;
    uint64_t used = 0;
    check(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    failed += used != kMiB;
    check(WorkVerify(block, kMiB, i, stream));
    check(cuMemFreeAsync(block, stream));
    check(cuStreamSynchronize(stream));
    check(cuMemPoolDestroy(pool));
  }
  NOTE(failed);
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

SCENARIO(pool_bad_arguments) {
  CUdeviceptr block = 0;
  const CUmemoryPool pool = NewPool(0);
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuMemAllocFromPoolAsync(&block, kMiB, nullptr, nullptr));
  DO(cuMemAllocFromPoolAsync(&block, 0, pool, nullptr));
  DO(cuMemAllocFromPoolAsync(nullptr, kMiB, pool, nullptr));
  CUmemoryPool none = nullptr;
  DO(cuMemPoolCreate(&none, nullptr));
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DO(cuMemPoolSetAccess(DefaultPool(0), &access, 1));  // for a device that is not there
  DO(cuMemPoolDestroy(nullptr));
  DO(cuMemPoolDestroy(DefaultPool(0)));
  DO(cuMemPoolTrimTo(nullptr, 0));
  DO(cuMemAllocAsync(&block, kMiB, nullptr));  // the default pool is there as ever
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuMemAllocFromPoolAsync(&block, kMiB, DefaultPool(0), nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuMemPoolDestroy(pool));
}

#ifndef __CUDACC__

// Of what is held one pool alone can say that it has reserved it.
SCENARIO_ALONE(pools_reserve_no_more_than_there_is) {
  const CUstream stream = NewStream();
  const CUmemoryPool pools[] = {DefaultPool(0), NewPool(0), NewPool(0)};
  CUdeviceptr block[3] = {};
  for (int i = 0; i < 3; ++i) DO(cuMemAllocFromPoolAsync(&block[i], (i + 1) * 5 * kMiB, pools[i], stream));
  const auto check = [&] {
    cuuint64_t reserved = 0;
    for (const CUmemoryPool pool : pools)
      reserved += PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    NOTE(reserved <= simPhysicalBytes(0));
  };
  check();
  for (int i : {0, 1}) DO(cuMemFreeAsync(block[i], stream));
  check();
  const Use first = UseOf(pools[0]);
  NOTE(first.reserved_high >= first.reserved);
  DO(cuMemFreeAsync(block[2], stream));
  DO(cuStreamSynchronize(stream));
  for (const int i : {1, 2}) {
    NOTE(PoolAttribute(pools[i], CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) < 5 * (i + 2) * kMiB);
    DO(cuMemPoolDestroy(pools[i]));
  }
  DO(cuStreamDestroy(stream));
}

// Of a block that was asked for in stream order the driver takes it that all who used it have finished.
SCENARIO(pool_block_freed_without_a_wait) {
  static volatile int go_on = 0;
  const CUstream stream = NewStream();
  const CUstream busy = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocAsync(&block, kMiB, stream));
  DO(cuStreamSynchronize(stream));
  DO(simSpinUntil(&go_on, busy));
  DO(cuMemFree(block));
  NOTE(cuStreamQuery(busy) == CUDA_ERROR_NOT_READY);
  go_on = 1;
  DO(cuStreamSynchronize(busy));
  DO(cuStreamDestroy(busy));
  DO(cuStreamDestroy(stream));
}

#endif

// What is freed beside a capture, on a stream that is new then, is no part of its pool any more, nor is it anybody's block.
SCENARIO(pool_block_freed_beside_a_capture) {
  const CUmemoryPool pool = NewPool(0);
  const CUstream captured = NewStream();
  const CUstream other = NewStream();
  CUdeviceptr block = 0;
  DO(cuMemAllocFromPoolAsync(&block, kMiB, pool, captured));
  DO(cuStreamSynchronize(captured));
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  DO(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(cuMemFreeAsync(block, other));
  DO(cuStreamSynchronize(other));
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
#ifndef __CUDACC__
  unsigned type = 0;
  DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
#endif
  DO(cuMemFreeAsync(block, other));
  EndCapture(captured);
  NOTE(PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  DO(cuMemPoolDestroy(pool));
  for (const CUstream each : {captured, other}) DO(cuStreamDestroy(each));
}
