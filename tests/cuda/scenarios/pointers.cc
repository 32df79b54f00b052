// What a pointer is: sizes and bases that the driver tells, and the frees of what is no block.
#include "tests/cuda/scenarios/scenario.h"

namespace {

void Describe(CUdeviceptr block, size_t bytes) {
  for (const size_t offset : {size_t{0}, size_t{1}, bytes / 2, bytes - 1}) {
    NOTE(offset);
    CUdeviceptr base = 0;
    size_t size = 0;
    DO(cuMemGetAddressRange(&base, &size, block + offset));
    NOTE(base == block);
    NOTE(size == bytes);
    unsigned type = 0;
    int device = -1;
    unsigned managed = 77;
    CUdeviceptr start = 0;
    size_t length = 0;
    const auto unset = reinterpret_cast<CUcontext>(uintptr_t{77});
    CUcontext context = unset;
    CUdeviceptr as_device = 0;
    int mapped = -1;
    unsigned within_reach = 77;  // of a network card
    unsigned for_decompression = 77;
    void* on_host = nullptr;
    unsigned long long exported_as = 77;
    const CUdeviceptr at = block + offset;
    DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    DO(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
    DO(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    DO(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at));
    DO(cuPointerGetAttribute(&length, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
    DO(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at));
    DO(cuPointerGetAttribute(&as_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at));
    DO(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, at));
    DO(cuPointerGetAttribute(&within_reach, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, at));
    DO(cuPointerGetAttribute(&for_decompression, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, at));
    DO(cuPointerGetAttribute(&on_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, at));
    DO(cuPointerGetAttribute(&exported_as, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
    NOTE(exported_as);
    NOTE(type);
    NOTE(device);
    NOTE(managed);
    NOTE(start == block);
    NOTE(length == bytes);
    NOTE(context == nullptr ? 0 : context == MainContext() ? 1 : context == unset ? 2 : 3);
    NOTE(as_device == at);
    NOTE(mapped);
    NOTE(within_reach);
    NOTE(for_decompression);
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                        CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                        CU_POINTER_ATTRIBUTE_CONTEXT};
    CUdeviceptr mapping = 0;
    size_t mapping_length = 0;
    context = unset;
    type = 0;
    start = 0;
    length = 0;
    device = -1;
    void* values[] = {&type, &start, &length, &device, &mapping, &mapping_length, &context};
    DO(cuPointerGetAttributes(7, attributes, values, at));
    // The piece of memory that the block lies in, which may be larger.
    NOTE(mapping <= block && block + bytes <= mapping + mapping_length);
    std::fprintf(stderr, "%zu bytes in a mapping of %zu, %zu from its begin\n", bytes, mapping_length,
                 static_cast<size_t>(block - mapping));
    NOTE(context == nullptr ? 0 : context == MainContext() ? 1 : context == unset ? 2 : 3);
    NOTE(type);
    NOTE(start == block);
    NOTE(length == bytes);
    NOTE(device);
  }
}

// Beyond the end of a block there is another, or nothing: not this one.
void Beyond(CUdeviceptr block, size_t bytes) {
  CUdeviceptr base = 0;
  size_t size = 0;
  const bool found = cuMemGetAddressRange(&base, &size, block + bytes) == CUDA_SUCCESS;
  NOTE(found && base == block);
}

}  // namespace

SCENARIO(pointer_of_an_async_block) {
  for (const size_t bytes : {512 * kKiB, 2 * kMiB, 5 * kMiB + 512}) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, bytes, nullptr));
    DO(cuCtxSynchronize());
    NOTE(block % 512);
    Describe(block, bytes);
    Beyond(block, bytes);
    CUmemoryPool pool = nullptr;
    DO(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
    NOTE(pool == DefaultPool(0));
    unsigned capable = 77;
    DO(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
    NOTE(capable);
    DO(cuMemFreeAsync(block, nullptr));
    DO(cuCtxSynchronize());
  }
}

SCENARIO(pointer_of_a_synchronous_block) {
  for (const size_t bytes : {512 * kKiB, 2 * kMiB, 5 * kMiB + 512}) {
    CUdeviceptr block = 0;
    DO(cuMemAlloc(&block, bytes));
    NOTE(block % 512);
    Describe(block, bytes);
    Beyond(block, bytes);
    CUmemoryPool pool = nullptr;
    DO(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
    NOTE(pool == nullptr);
    DO(cuMemFree(block));
  }
}

SCENARIO(pointer_of_odd_sizes) {
  for (const size_t bytes : {size_t{1}, size_t{7}, size_t{511}, size_t{513}, size_t{4095}, kMiB + 1}) {
    CUdeviceptr block = 0;
    CUdeviceptr base = 0;
    size_t size = 0;
    DO(cuMemAllocAsync(&block, bytes, nullptr));
    DO(cuMemGetAddressRange(&base, &size, block));
    NOTE(base == block);
    NOTE(size >= bytes);
    Beyond(block, size);
    DO(WorkFill(block, bytes, bytes, nullptr));
    DO(WorkVerify(block, bytes, bytes, nullptr));
    DO(cuMemFreeAsync(block, nullptr));
  }
  CheckBytes();
}

SCENARIO(pointer_attributes_with_bad_arguments) {
  CUdeviceptr block = 0;
  int value = 0;
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  DO(cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(9999), block));
  DO(cuMemGetAddressRange(nullptr, nullptr, block));
  size_t size = 0;
  DO(cuMemGetAddressRange(nullptr, &size, block));
  NOTE(size == kMiB);
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuCtxSynchronize());
  DO(cuMemGetAddressRange(nullptr, &size, 4096));
  DO(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096));
}

#ifndef __CUDACC__

// Of memory that is kept for the next request nothing is told: it is no block. (What NVIDIA's driver says of a pool's
// is documented nowhere.)
SCENARIO(pointer_of_a_block_that_has_been_freed) {
  const auto describe = [](CUdeviceptr block) {
    CUdeviceptr base = 0;
    size_t size = 0;
    unsigned type = 77;
    int device = 77;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* values[] = {&type, &size, &device};
    DO(cuMemGetAddressRange(&base, &size, block));
    DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
    DO(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block));
    NOTE(type);
    DO(cuPointerGetAttributes(3, attributes, values, block));
    NOTE(type);
    NOTE(size);
    NOTE(device);
  };
  cuuint64_t keep_all = ~cuuint64_t{0};
  DO(cuMemPoolSetAttribute(DefaultPool(0), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  CUdeviceptr ordered[2] = {};
  CUdeviceptr synchronous[2] = {};
  for (CUdeviceptr& block : ordered) DO(cuMemAllocAsync(&block, kMiB, nullptr));
  for (CUdeviceptr& block : synchronous) DO(cuMemAlloc(&block, kMiB));
  DO(cuMemFreeAsync(ordered[0], nullptr));
  DO(cuMemFree(synchronous[0]));
  DO(cuCtxSynchronize());
  describe(ordered[0]);
  describe(synchronous[0]);
  DO(cuMemFreeAsync(ordered[1], nullptr));
  DO(cuMemFree(synchronous[1]));
}

#endif

SCENARIO(size_zero_and_null) {
  CUdeviceptr block = 77;
  DO(cuMemAlloc(&block, 0));
  NOTE(block);
  block = 77;
  DO(cuMemAllocAsync(&block, 0, nullptr));
  NOTE(block == 77);
  NOTE(block == 0);
  DO(cuMemFreeAsync(block == 77 ? 0 : block, nullptr));
  DO(cuMemFree(0));
  DO(cuMemFreeAsync(0, nullptr));
  DO(cuMemAlloc(nullptr, kMiB));
  DO(cuMemAllocAsync(nullptr, kMiB, nullptr));
}

SCENARIO(free_twice) {
  CUdeviceptr block = 0;
  DO(cuMemAlloc(&block, kMiB));
  DO(cuMemFree(block));
  DO(cuMemFree(block));
  DO(cuMemAllocAsync(&block, kMiB, nullptr));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuCtxSynchronize());
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuMemFree(block));
  CheckBytes();
}

// The address says whose it is, where no context is current. But where it begins is not told then.
SCENARIO(free_without_a_context) {
  CUdeviceptr synchronous = 0;
  CUdeviceptr ordered = 0;
  size_t size = 77;
  DO(cuMemAlloc(&synchronous, kMiB));
  DO(cuMemAllocAsync(&ordered, kMiB, nullptr));
  DO(cuCtxSynchronize());
  DO(cuCtxSetCurrent(nullptr));
  DO(cuMemGetAddressRange(nullptr, &size, synchronous));
  DO(cuMemGetAddressRange(nullptr, &size, ordered));
  NOTE(size);
  for (const CUdeviceptr block : {synchronous, ordered}) {
    CUdeviceptr address = 0;
    unsigned type = 0;
    DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
    DO(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block));
    DO(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, block));
    NOTE(type);
    NOTE(size);
  }
  DO(cuMemFree(synchronous));
  DO(cuMemFree(synchronous));
  DO(cuMemFree(ordered));
  DO(cuMemFree(ordered));
  DO(cuCtxSetCurrent(MainContext()));
  CheckInfo(0);
}

SCENARIO(free_of_what_is_no_block) {
  CUdeviceptr synchronous = 0;
  CUdeviceptr ordered = 0;
  void* host = nullptr;
  static char global[64];
  DO(cuMemAlloc(&synchronous, kMiB));
  DO(cuMemAllocAsync(&ordered, kMiB, nullptr));
  DO(cuMemAllocHost(&host, 4096));
  DO(cuMemFree(synchronous + 512));
  DO(cuMemFree(ordered + 512));
  DO(cuMemFreeAsync(synchronous + 512, nullptr));
  DO(cuMemFreeAsync(ordered + 512, nullptr));
  DO(cuMemFree(12345));
  DO(cuMemFreeAsync(12345, nullptr));
  DO(cuMemFree(reinterpret_cast<CUdeviceptr>(&global)));
  DO(cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(&global), nullptr));
  DO(cuMemFree(~CUdeviceptr{0}));
  DO(cuMemFreeAsync(~CUdeviceptr{0}, nullptr));
  DO(WorkFill(ordered, kMiB, 1, nullptr));  // still there
  DO(WorkVerify(ordered, kMiB, 1, nullptr));
  DO(cuMemFreeAsync(ordered, nullptr));
  DO(cuMemFree(synchronous));
  DO(cuMemFreeHost(host));
  CheckBytes();
}

// Pool memory may be freed by the call that waits, but does not for such memory.
SCENARIO(free_of_pool_memory_by_the_call_that_waits) {
  const CUstream stream = NewStream();
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr block = 0;
    DO(cuMemAllocAsync(&block, kMiB, stream));
    DO(WorkFill(block, kMiB, i, stream));
    DO(WorkVerify(block, kMiB, i, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemFree(block));
    DO(cuMemFree(block));
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}

// The other way round: by then the stream is done with it. It is another block's, on any stream, only after that.
SCENARIO(free_of_a_synchronous_block_in_stream_order) {
  const CUstream streams[] = {NewStream(), NewStream()};
  CUdeviceptr blocks[4] = {};
  for (int i = 0; i < 12; ++i) {
    const CUstream stream = streams[i % 2];
    for (CUdeviceptr& block : blocks) {
      DO(cuMemAlloc(&block, kMiB));
      DO(WorkFill(block, kMiB, i, stream));
    }
    for (const CUdeviceptr block : blocks) {
      DO(WorkVerify(block, kMiB, i, stream));
      DO(cuMemFreeAsync(block, stream));
    }
  }
  CheckBytes();
  CheckInfo(0);
  for (const CUstream each : streams) DO(cuStreamDestroy(each));
}

SCENARIO(pitch) {
  for (const unsigned element : {4u, 8u, 16u}) {
    CUdeviceptr block = 0;
    size_t pitch = 0;
    DO(cuMemAllocPitch(&block, &pitch, 1000, 700, element));
    NOTE(pitch);
    CUdeviceptr base = 0;
    size_t size = 0;
    DO(cuMemGetAddressRange(&base, &size, block + 699 * pitch + 999));
    NOTE(base == block);
    NOTE(size);
    DO(WorkFill(block, 700 * pitch, 3, nullptr));
    DO(WorkVerify(block, 700 * pitch, 3, nullptr));
    DO(cuMemFree(block));
  }
  CUdeviceptr block = 0;
  size_t pitch = 0;
  DO(cuMemAllocPitch(&block, &pitch, 1000, 700, 3));
  DO(cuMemAllocPitch(&block, &pitch, 0, 700, 4));
  CheckBytes();
}
