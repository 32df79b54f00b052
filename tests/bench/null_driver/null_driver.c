/* What a core asks of a driver, with the least that an answer can be. One device, one context. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "replay/abi.h"

enum { success = 0, invalid_value = 1, out_of_memory = 2 };
static const size_t granule = 2 << 20;
static const size_t device_bytes = (size_t)64 << 30;
static char the_context, the_pool;

static uint64_t next_number(void) {
  static uint64_t last = 15; /* the first ones name default streams */
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

int cuInit(unsigned flags) { return success; }
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { return *value = 1, success; }
int cuDeviceCanAccessPeer(int* can, int device, int peer) { return *can = 0, success; }
int cuDeviceGetName(char* name, int length, int device) { return strncpy(name, "null", length), success; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = device_bytes, success; }
int cuDeviceGetMemPool(cu_pool* pool, int device) { return *pool = (cu_pool)&the_pool, success; }
int cuDeviceGetDefaultMemPool(cu_pool* pool, int device) { return *pool = (cu_pool)&the_pool, success; }
int cuMemPoolGetAccess(int* flags, cu_pool pool, struct cu_location* location) { return *flags = 0, success; }

int cuCtxGetCurrent(cu_context* context) { return *context = (cu_context)&the_context, success; }
int cuCtxSetCurrent(cu_context context) { return success; }
int cuCtxPushCurrent_v2(cu_context context) { return success; }
int cuCtxPopCurrent_v2(cu_context* context) { return *context = (cu_context)&the_context, success; }
int cuCtxGetDevice(int* device) { return *device = 0, success; }
int cuCtxSynchronize(void) { return success; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, success;
}
int cuDevicePrimaryCtxRetain(cu_context* context, int device) {
  return *context = (cu_context)&the_context, success;
}

int cuStreamCreate(cu_stream* stream, unsigned flags) { return *stream = (cu_stream)next_number(), success; }
int cuStreamGetCtx(cu_stream stream, cu_context* context) {
  return *context = (cu_context)&the_context, success;
}
int cuStreamGetFlags(cu_stream stream, unsigned* flags) { return *flags = 1 /* non-blocking */, success; }
int cuStreamQuery(cu_stream stream) { return success; }
int cuStreamIsCapturing(cu_stream stream, int* status) { return *status = 0, success; }
int cuStreamWaitEvent(cu_stream stream, void* event, unsigned flags) { return success; }
int cuEventCreate(void** event, unsigned flags) { return *event = (void*)next_number(), success; }
int cuEventRecord(void* event, cu_stream stream) { return success; }
int cuEventQuery(void* event) { return success; }

int cuMemGetAllocationGranularity(size_t* bytes, const void* prop, int option) {
  return *bytes = granule, success;
}
int cuMemAddressReserve(cu_address* begin, size_t bytes, size_t alignment, cu_address hint, uint64_t flags) {
  void* const range =
      mmap(NULL, bytes + granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return out_of_memory;
  *begin = ((uintptr_t)range + granule - 1) / granule * granule; /* never given back: a benchmark ends */
  return success;
}
int cuMemCreate(uint64_t* handle, size_t bytes, const void* prop, uint64_t flags) {
  return *handle = next_number(), success;
}
int cuMemRelease(uint64_t handle) { return success; }
int cuMemMap(cu_address at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags) { return success; }
int cuMemUnmap(cu_address at, size_t bytes) { return success; }
int cuMemSetAccess(cu_address at, size_t bytes, const struct cu_access* access, size_t count) {
  return success;
}

int cuMemGetInfo_v2(size_t* unused, size_t* total) { return *unused = *total = device_bytes, success; }
int cuMemPoolGetAttribute(cu_pool pool, int attribute, void* value) { return *(uint64_t*)value = 0, success; }

/* A benchmark over blocks that nobody serves measures an addition. */
static int bump(cu_address* out, size_t bytes) {
  static cu_address next = (cu_address)1 << 46;
  *out = __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
  return success;
}
int cuMemAlloc_v2(cu_address* out, size_t bytes) { return bump(out, bytes); }
int cuMemAllocAsync(cu_address* out, size_t bytes, cu_stream stream) { return bump(out, bytes); }
int cuMemAllocAsync_ptsz(cu_address* out, size_t bytes, cu_stream stream) { return bump(out, bytes); }
