// The calls of driver_calls.h through the runtime. Compiled into programs and plugins.
#pragma once

#include <cuda_runtime_api.h>
#include <stdio.h>

#define EXPECT(call)                              \
  do {                                            \
    const int result_ = (int)(call);              \
    if (result_ != 0) {                           \
      printf("%s answered %d\n", #call, result_); \
      return 1;                                   \
    }                                             \
  } while (0)

static inline int use_runtime(void) {
  const size_t bytes = 1 << 20;
  size_t unused, total;
  void *block, *others[2];
  EXPECT(cudaMalloc(&block, bytes));
  EXPECT(cudaMallocAsync(&others[0], bytes, NULL));
  EXPECT(cudaMallocAsync(&others[1], bytes, NULL));
  EXPECT(cudaMemGetInfo(&unused, &total));
  EXPECT(cudaFreeAsync(others[0], NULL));
  EXPECT(cudaFreeAsync(others[1], NULL));
  EXPECT(cudaFree(block));
  EXPECT(cudaDeviceSynchronize());
  printf("free + used <= total: %d\n", unused + 3 * bytes <= total);
  return 0;
}
