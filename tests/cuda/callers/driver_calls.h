// The same few calls of the driver, however a program came by its functions: one block allocated and freed in
// the synchronous way, two in the stream-ordered way, and the free memory asked for once.
#pragma once

#include <cuda.h>
#include <stdio.h>

#define NAME_OF(name) #name
#define NAME(name) NAME_OF(name)  // after the header's renaming: what a program that is linked asks for

struct driver_calls {
  CUresult(CUDAAPI* init)(unsigned);
  CUresult(CUDAAPI* deviceGet)(CUdevice*, int);
  CUresult(CUDAAPI* retain)(CUcontext*, CUdevice);
  CUresult(CUDAAPI* setCurrent)(CUcontext);
  CUresult(CUDAAPI* synchronize)(void);
  CUresult(CUDAAPI* getInfo)(size_t*, size_t*);
  CUresult(CUDAAPI* alloc)(CUdeviceptr*, size_t);
  CUresult(CUDAAPI* free)(CUdeviceptr);
  CUresult(CUDAAPI* allocAsync)(CUdeviceptr*, size_t, CUstream);
  CUresult(CUDAAPI* freeAsync)(CUdeviceptr, CUstream);
};

// Field, name, and the CUDA version whose meaning is asked for.
#define DRIVER_CALLS(X)                     \
  X(init, cuInit, 2000)                     \
  X(deviceGet, cuDeviceGet, 2000)           \
  X(retain, cuDevicePrimaryCtxRetain, 7000) \
  X(setCurrent, cuCtxSetCurrent, 4000)      \
  X(synchronize, cuCtxSynchronize, 2000)    \
  X(getInfo, cuMemGetInfo, 3020)            \
  X(alloc, cuMemAlloc, 3020)                \
  X(free, cuMemFree, 3020)                  \
  X(allocAsync, cuMemAllocAsync, 11020)     \
  X(freeAsync, cuMemFreeAsync, 11020)

#define EXPECT(call)                              \
  do {                                            \
    const int result_ = (int)(call);              \
    if (result_ != 0) {                           \
      printf("%s answered %d\n", #call, result_); \
      return 1;                                   \
    }                                             \
  } while (0)

static inline int start(const struct driver_calls* driver) {
  CUdevice device;
  CUcontext context;
  EXPECT(driver->init(0));
  EXPECT(driver->deviceGet(&device, 0));
  EXPECT(driver->retain(&context, device));
  EXPECT(driver->setCurrent(context));
  return 0;
}

static inline int use(const struct driver_calls* driver) {
  const size_t bytes = 1 << 20;
  size_t unused, total;
  CUdeviceptr block, others[2];
  if (start(driver) != 0) return 1;
  EXPECT(driver->alloc(&block, bytes));
  EXPECT(driver->allocAsync(&others[0], bytes, NULL));
  EXPECT(driver->allocAsync(&others[1], bytes, NULL));
  EXPECT(driver->getInfo(&unused, &total));
  EXPECT(driver->freeAsync(others[0], NULL));
  EXPECT(driver->freeAsync(others[1], NULL));
  EXPECT(driver->free(block));
  EXPECT(driver->synchronize());
  printf("free + used <= total: %d\n", unused + 3 * bytes <= total);
  return 0;
}
