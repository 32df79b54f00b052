// The same where our call has to wait for one of another thread, which the driver's need not: a block is freed whose
// context that one is ending.
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlocks = 12 };

static CUcontext context;
static CUdeviceptr blocks[kBlocks];
static sem_t at_the_end, may_end;

static void wait_for(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

static void take(void) {
  for (int i = 0; i < kBlocks; ++i) {
    if (cuMemAlloc(&blocks[i], (size_t)(i % 5 + 1) << 20) != 0) exit(2);
  }
}

static void last_work(void* unused) {
  (void)unused;
  sem_post(&at_the_end);
  wait_for(&may_end);
}

static void* ends_the_context(void* unused) {
  CUstream stream;
  if (cuCtxSetCurrent(context) != 0 || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0) exit(2);
  if (cuLaunchHostFunc(stream, last_work, NULL) != 0) exit(2);
  printf("ended: %d\n", cuCtxDestroy(context));
  return unused;
}

static void* is_cancelled(void* unused) {
  if (cuCtxSetCurrent(context) != 0) exit(2);
  pthread_cancel(pthread_self());
  sem_post(&may_end);
  cuMemFree(blocks[3]);
  pthread_testcancel();
  return unused;
}

int main(void) {
  pthread_t ending, cancelled;
  void* result = NULL;
  CUdevice device = 0;
  if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || cuCtxCreate(&context, NULL, 0, device) != 0) return 2;
  for (int i = 0; i < 60; ++i) { /* of which there is a plan then */
    take();
    for (int j = 0; j < kBlocks; ++j) {
      if (cuMemFree(blocks[j]) != 0) return 2;
    }
  }
  take();
  if (sem_init(&at_the_end, 0, 0) != 0 || sem_init(&may_end, 0, 0) != 0) return 2;
  if (pthread_create(&ending, NULL, ends_the_context, NULL) != 0) return 2;
  wait_for(&at_the_end);
  if (pthread_create(&cancelled, NULL, is_cancelled, NULL) != 0) return 2;
  if (pthread_join(cancelled, &result) != 0 || pthread_join(ending, NULL) != 0) return 2;
  printf("cancelled: %d\n", result == PTHREAD_CANCELED);
  return 0;
}
