// Memory that leaves the process, and virtual memory that the program manages itself.
#include <unistd.h>

#include "tests/cuda/scenarios/scenario.h"

// Legacy IPC, as a job uses it that exports something in every iteration.
SCENARIO(ipc_of_a_synchronous_block) {
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr other = 0;
    CUipcMemHandle handle;
    int result = cuMemAlloc(&block, 2 * kMiB);
    result = result != 0 ? result : cuMemAlloc(&other, 3 * kMiB);
    result = result != 0 ? result : cuIpcGetMemHandle(&handle, block);
    result = result != 0 ? result : cuMemFree(other);
    result = result != 0 ? result : cuMemFree(block);
    if (i == 0 || result != 0) NOTE(result);
  }
  CheckBytes();
}

// A library that connects to another process beside a job in stream order, once that is served by plan.
SCENARIO(ipc_of_a_synchronous_block_beside_a_training_in_stream_order) {
  Train({NewStream(), /*synchronous=*/false, 60});
  CUdeviceptr block = 0;
  CUipcMemHandle handle;
  DO(cuMemAlloc(&block, 2 * kMiB));
  DO(cuIpcGetMemHandle(&handle, block));
  DO(cuMemFree(block));
  CheckBytes();
}

// How a network takes memory: by a descriptor, and by asking that copies be over when their call returns.
SCENARIO(descriptor_of_a_synchronous_block) {
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr other = 0;
    int descriptor = -1;
    DO(cuMemAlloc(&block, 2 * kMiB));
    DO(cuMemAlloc(&other, 3 * kMiB));
    DO(cuMemGetHandleForAddressRange(&descriptor, block, 2 * kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (descriptor >= 0) close(descriptor);
    DO(cuMemFree(other));
    DO(cuMemFree(block));
  }
  CheckBytes();
}

SCENARIO(synchronous_copies_of_a_synchronous_block) {
  const unsigned on = 1;
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr other = 0;
    DO(cuMemAlloc(&block, 2 * kMiB));
    DO(cuMemAlloc(&other, 3 * kMiB));
    DO(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
    DO(cuMemFree(other));
    DO(cuMemFree(block));
  }
  CheckBytes();
}

// Which the driver gives for a network as well, and makes copies synchronous.
SCENARIO(tokens_of_a_synchronous_block) {
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    CUdeviceptr other = 0;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    DO(cuMemAlloc(&block, 2 * kMiB));
    DO(cuMemAlloc(&other, 3 * kMiB));
    DO(cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, block));
    DO(cuMemFree(other));
    DO(cuMemFree(block));
  }
  CheckBytes();
}

SCENARIO(ipc_of_an_async_block) {
  CUdeviceptr block = 0;
  CUipcMemHandle handle;
  DO(cuMemAllocAsync(&block, 2 * kMiB, nullptr));
  DO(cuIpcGetMemHandle(&handle, block));
  DO(cuMemFreeAsync(block, nullptr));
  DO(cuIpcGetMemHandle(&handle, 4096));
  CheckBytes();
}

// What else is tried to find out how a block can be shown to others. It cannot.
SCENARIO(exports_of_an_async_block) {
  CUdeviceptr block = 0;
  CUmemPoolPtrExportData data = {};
  CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
  const unsigned on = 1;
  DO(cuMemAllocAsync(&block, 2 * kMiB, nullptr));
  DO(cuMemPoolExportPointer(&data, block));
  DO(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  DO(cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, block));
  DO(cuMemFreeAsync(block, nullptr));
  CheckBytes();
}

SCENARIO(handle_for_an_address_range) {
  CUdeviceptr block = 0;
  int descriptor = -1;
  DO(cuMemAllocAsync(&block, 2 * kMiB, nullptr));
  DO(cuCtxSynchronize());
  DO(cuMemGetHandleForAddressRange(&descriptor, block, 2 * kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  if (descriptor >= 0) close(descriptor);
  DO(cuMemFreeAsync(block, nullptr));
}

SCENARIO(handle_of_a_block_that_is_not_virtual_memory) {
  CUdeviceptr block = 0;
  CUmemGenericAllocationHandle handle = 0;
  DO(cuMemAlloc(&block, 2 * kMiB));
  DO(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(block)));
  DO(cuMemFree(block));
  DO(cuMemAllocAsync(&block, 2 * kMiB, nullptr));
  DO(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(block)));
  DO(cuMemFreeAsync(block, nullptr));
  CheckBytes();
}

namespace {

// What is said of it goes to stderr where no one has seen a real driver's answer yet.
void DescribeMapped(CUdeviceptr block, size_t bytes) {
  CUcontext context = MainContext();
  unsigned within_reach = 77;
  size_t length = 0;
  int descriptor = -1;
  const int of_context = cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block);
  const int of_reach =
      cuPointerGetAttribute(&within_reach, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, block);
  const int of_length = cuPointerGetAttribute(&length, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, block);
  const int of_file =
      cuMemGetHandleForAddressRange(&descriptor, block, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (descriptor >= 0) close(descriptor);
  std::fprintf(stderr, "mapped: context %d %d, reach %d %u, mapping %d %zu of %zu, file %d\n", of_context,
               context == nullptr         ? 0
               : context == MainContext() ? 1
                                          : 2,
               of_reach, within_reach, of_length, length, bytes, of_file);
}

}  // namespace

// NCCL and PyTorch's expandable segments manage virtual memory of their own.
SCENARIO(virtual_memory_of_the_program) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t granule = 0;
  DO(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  NOTE(granule);
  const CUstream stream = NewStream();
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr range = 0;
    CUdeviceptr block = 0;
    CUmemGenericAllocationHandle handle = 0;
    DO(cuMemAddressReserve(&range, 4 * granule, 0, 0, 0));
    DO(cuMemCreate(&handle, 2 * granule, &prop, 0));
    DO(cuMemMap(range + granule, 2 * granule, 0, handle, 0));
    DO(cuMemSetAccess(range + granule, 2 * granule, &access, 1));
    DO(cuMemAllocAsync(&block, kMiB, stream));
    DO(WorkFill(range + granule, 2 * granule, i, stream));
    DO(WorkFill(block, kMiB, i + 1, stream));
    DO(WorkVerify(range + granule, 2 * granule, i, stream));
    DO(WorkVerify(block, kMiB, i + 1, stream));
    CUdeviceptr base = 0;
    size_t size = 0;
    DO(cuMemGetAddressRange(&base, &size, range + granule + 5));
    NOTE(base == range + granule);
    NOTE(size == 2 * granule);
    if (i == 0) DescribeMapped(range + granule, 2 * granule);
    CUmemGenericAllocationHandle again = 0;
    DO(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + granule)));
    NOTE(again == handle);
    DO(cuMemRelease(again));
    CheckInfo(2 * granule + kMiB);
    DO(cuMemFree(range + granule));
    DO(cuMemFreeAsync(range + granule, stream));
    DO(cuMemFreeAsync(block, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemUnmap(range + granule, 2 * granule));
    DO(cuMemRelease(handle));
    DO(cuMemAddressFree(range, 4 * granule));
  }
  CheckBytes();
  DO(cuStreamDestroy(stream));
}
