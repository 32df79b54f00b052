// What scenarios share. A scenario uses public CUDA calls only, and prints the result of each, and whatever
// else a program can see that does not depend on addresses: its output must be the same with and without the
// preload library.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cuda/device_work.h"

struct Scenario {
  const char* name;
  void (*play)();
  bool alone;  // wants most of a device, so that what else runs there would be told
  static std::vector<Scenario>& All();
};

struct RegisteredScenario {
  RegisteredScenario(const char* name, void (*play)(), bool alone) {
    Scenario::All().push_back({name, play, alone});
  }
};

#define REGISTERED_SCENARIO(name, alone)                                 \
  static void name();                                                    \
  static const RegisteredScenario name##_registered{#name, name, alone}; \
  static void name()
#define SCENARIO(name) REGISTERED_SCENARIO(name, false)
#define SCENARIO_ALONE(name) REGISTERED_SCENARIO(name, true)

// Makes a call and prints its result.
#define DO(call) Report(#call, static_cast<int>(call))
int Report(const char* call, int result);

void Note(const char* what, int64_t value);
#define NOTE(expression) Note(#expression, static_cast<int64_t>(expression))

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;

// How many contexts a scenario makes, one after the other, that would find what only happens now and then: a GPU takes
// up to a second for each.
#ifdef __CUDACC__
inline constexpr int kContexts = 3;
#else
inline constexpr int kContexts = 20;
#endif

// The context that the scenario runs in: the primary one of device 0, which is current when a scenario
// begins.
CUcontext MainContext();
CUcontext PrimaryContext(CUdevice device);  // retained, and made current
CUcontext NewContext(CUdevice device);      // created, and current
CUstream NewStream();                       // that does not wait for the legacy default stream
CUevent NewEvent();
CUmemoryPool DefaultPool(CUdevice device);
CUmemPoolProps PlainPool(CUdevice device);                     // of another one like it, to be created
CUmemoryPool NewPool(CUdevice device, size_t most_bytes = 0);  // the same, created; prints it
cuuint64_t PoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute);  // prints a failure
bool TwoDevices();                                                           // at least; prints it

// What device 0 had left when this was first asked: there all of it, or as much as others let a scenario have, to
// whom a device is small then that is too large to be filled in the time there is.
size_t DeviceBytes();

// Ends a capture of which nobody wants the graph; prints it.
void EndCapture(CUstream captured);

// Prints whether free and total memory agree with `held`, the bytes that the scenario has now.
void CheckInfo(size_t held);

// Waits for the device and prints how many bytes were found wrong so far.
void CheckBytes();

// A training job in miniature, which does the same every iteration; long enough to be recognised.
struct Training {
  CUstream stream;
  bool synchronous;  // cuMemAlloc and cuMemFree
  int iterations;
};
void Train(const Training& training);
