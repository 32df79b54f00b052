// A capture that begins while the core is being opened, of which the core is not told: by another thread, as a rule;
// here by the loader's dlopen, which is this program's.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUstream captured;

static void begin_capture(void) {
  if (cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING) != 0) exit(2);
  if (cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED) != 0) exit(2);
}

void* dlopen(const char* path, int flags) {
  void* (*const real)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  if (path && strstr(path, "libreprise_core")) begin_capture();
  return real(path, flags);
}

int main(void) {
  enum { bytes = 1 << 20 };
  CUcontext context;
  CUstream first;
  if (cuInit(0) != 0 || cuCtxCreate(&context, NULL, 0, 0) != 0) return 2;
  if (cuStreamCreate(&first, CU_STREAM_NON_BLOCKING) != 0) return 2;
  printf("begun before: %d\n", captured != NULL);
  if (!captured) begin_capture();
  CUdeviceptr block = 0;
  CUgraph graph;
  CUgraphExec executable;
  size_t nodes = 0;
  const CUresult made = cuMemAllocAsync(&block, bytes, captured);
  const CUresult set = cuMemsetD8Async(block, 1, bytes, captured);
  const CUresult freed = cuMemFreeAsync(block, captured);
  const CUresult ended = cuStreamEndCapture(captured, &graph);
  const CUresult counted = ended ? ended : cuGraphGetNodes(graph, NULL, &nodes);
  const CUresult instantiated = ended ? ended : cuGraphInstantiate(&executable, graph, 0);
  const CUresult launched = instantiated ? instantiated : cuGraphLaunch(executable, captured);
  printf("%d %d %d %d %d %d %d, %zu nodes\n", made, set, freed, ended, counted, instantiated, launched,
         nodes);
  const CUresult made_after = cuMemAllocAsync(&block, bytes, captured);
  const CUresult freed_after = cuMemFreeAsync(block, captured);
  printf("%d %d %d\n", made_after, freed_after, cuCtxSynchronize());
  return 0;
}
