// A thread that is to be cancelled, at the next point where that is allowed. No call of the driver is one, the
// first on the device neither.
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>

static void* is_cancelled(void* unused) {
  CUdeviceptr block = 0;
  CUcontext context;
  pthread_cancel(pthread_self());
  if (cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0) return unused;
  const int made = cuMemAllocAsync(&block, 1 << 20, NULL);
  const int freed = cuMemFreeAsync(block, NULL);
  printf("%d %d\n", made, freed);
  fflush(stdout);
  pthread_testcancel();
  return unused;
}

int main(void) {
  pthread_t thread;
  void* result = NULL;
  if (cuInit(0) != 0) return 2;
  if (pthread_create(&thread, NULL, is_cancelled, NULL) != 0 || pthread_join(thread, &result) != 0) return 2;
  printf("cancelled: %d\n", result == PTHREAD_CANCELED);
  return 0;
}
