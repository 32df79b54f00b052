/* The time of one allocation and of its free, in nanoseconds, and how the free memory that the caller sees
 * moves with them. One JSON object on stdout.
 *
 * The same block over and over: that is what a cache is best at, so it flatters everybody alike. */
#include <time.h>

#include "tests/gpu/programs/cuda_check.h"

enum { WARM_UP = 200, PAIRS = 400 };

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const long long x = *(const long long*)a, y = *(const long long*)b;
  return (x > y) - (x < y);
}

static void print_times(const char* name, long long* times) {
  qsort(times, PAIRS, sizeof *times, by_value);
  printf("\"%s\": {\"median\": %lld, \"p10\": %lld, \"p90\": %lld}", name, times[PAIRS / 2],
         times[PAIRS / 10], times[PAIRS * 9 / 10]);
}

static void time_pairs(int ordered, size_t bytes, cudaStream_t stream) {
  static long long allocations[PAIRS], frees[PAIRS];
  for (int i = -WARM_UP; i < PAIRS; ++i) {
    void* block;
    const long long began = now();
    if (ordered) {
      CHECK(cudaMallocAsync(&block, bytes, stream));
    } else {
      CHECK(cudaMalloc(&block, bytes));
    }
    const long long allocated = now();
    if (ordered) {
      CHECK(cudaFreeAsync(block, stream));
    } else {
      CHECK(cudaFree(block));
    }
    if (i < 0) continue;
    allocations[i] = allocated - began;
    frees[i] = now() - allocated;
  }
  CHECK(cudaStreamSynchronize(stream));
  printf("{\"call\": \"%s\", \"bytes\": %zu, ", ordered ? "cudaMallocAsync" : "cudaMalloc", bytes);
  print_times("allocate", allocations);
  printf(", ");
  print_times("free", frees);
  printf("}");
}

static void print_free_seen(size_t bytes) {
  size_t before, during, after, total;
  void* block;
  CHECK(cudaMemGetInfo(&before, &total));
  CHECK(cudaMalloc(&block, bytes));
  CHECK(cudaMemGetInfo(&during, &total));
  CHECK(cudaFree(block));
  CHECK(cudaMemGetInfo(&after, &total));
  printf("\"free_seen\": {\"block\": %zu, \"before\": %zu, \"during\": %zu, \"after\": %zu, \"total\": %zu}",
         bytes, before, during, after, total);
}

int main(void) {
  static const size_t sizes[] = {64 << 10, 1 << 20, 64 << 20};
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  printf("{\"times_ns\": [");
  for (int i = 0; i < 6; ++i) {
    if (i > 0) printf(", ");
    time_pairs(i / 3, sizes[i % 3], stream);
  }
  printf("], ");
  print_free_seen(64 << 20);
  printf("}\n");
  return 0;
}
