// What the simulated device offers beyond the CUDA driver API: "kernels" of its own, and a look into its
// state. libcuda.so.1 exports these names; a program that also runs on other drivers finds them by dlsym.
//
// Kernels touch device memory when the stream reaches them, never when they are called. Contents are a
// pattern derived from a seed, so that a range written for one purpose and read for another shows as
// corrupted bytes.
#pragma once

#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

CUresult simFill(CUdeviceptr dst, size_t bytes, unsigned long long seed, CUstream stream);
CUresult simVerify(CUdeviceptr src, size_t bytes, unsigned long long seed, CUstream stream);
// A kernel that is not over before the host has stored something other than 0 in *flag.
CUresult simSpinUntil(const volatile int* flag, CUstream stream);

// Bytes that simVerify found wrong, in this process, so far.
unsigned long long simCorruptedBytes(void);
// Operations that touched memory which was not mapped, or not accessible to their device.
unsigned long long simIllegalAccesses(void);
// Work that has been queued and not run, on one stream or on all of them.
unsigned long long simQueuedOperations(CUstream stream);
unsigned long long simAllQueuedOperations(void);
// Runs up to `count` queued operations, drawn from what stream and event order allows; answers how many ran.
unsigned long long simRunSome(unsigned long long count);
// Starts the drawing of orders anew, as SIMCUDA_SEED does for a process.
void simReseed(unsigned long long seed);

unsigned long long simPhysicalBytes(CUdevice device);
unsigned long long simPeakPhysicalBytes(CUdevice device);
void simResetPeakPhysicalBytes(CUdevice device);
// The host's memory behind handles of cuMemCreate.
unsigned long long simHostPhysicalBytes(void);
unsigned long long simPeakHostPhysicalBytes(void);
// Calls in which the host waited for the device: synchronising calls and frees that synchronise.
unsigned long long simHostSynchronizations(void);
// Calls of cuStreamWaitEvent.
unsigned long long simEventWaits(void);

// For a profiler of this device: told of each kernel, copy and set once it has run, and of ranges that the
// host marks. Called under the simulator's lock: it may not call the API. Times are of the wall clock, in
// nanoseconds.
enum {
  SIM_ACTIVITY_KERNEL,
  SIM_ACTIVITY_COPY,
  SIM_ACTIVITY_SET,
  SIM_ACTIVITY_RANGE_BEGIN,
  SIM_ACTIVITY_RANGE_END
};
typedef struct {
  int kind;
  const char* name;          // of a kernel or the begin of a range; stays as it is
  unsigned long long bytes;  // of a copy or set
  int copy_kind;  // 1 host to device, 2 device to host, 8 within a device, 9 within the host, 10 between devices
  unsigned device, context, stream;
  unsigned range, thread;         // of ranges
  unsigned long long begin, end;  // of a range's begin or end both are the moment
} simActivity;
typedef void (*simObserver)(const simActivity* activity);
void simObserve(simObserver observer);  // null: nobody
// A range of this thread, as an annotation library would mark it; answers its number. `name` must stay.
unsigned simRangeBegin(const char* name);
void simRangeEnd(unsigned range);

#ifdef __cplusplus
}
#endif
