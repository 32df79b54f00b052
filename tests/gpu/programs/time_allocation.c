/* The time of one allocation and of one free, in nanoseconds, and how the free memory that the caller sees
 * moves with them. One JSON object on stdout.
 *
 * In rounds of blocks of several sizes, as an iteration of a job is, and after a second of them: what learns
 * has learned, what caches is warm. Nothing runs on the device meanwhile. */
#include <time.h>

#include "tests/gpu/programs/cuda_check.h"

enum { BLOCKS = 24, ROUNDS = 40, SAMPLES = ROUNDS * BLOCKS };

static const long long warm_up = 1000000000; /* ns */

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
  qsort(times, SAMPLES, sizeof *times, by_value);
  printf("\"%s\": {\"median\": %lld, \"p10\": %lld, \"p90\": %lld}", name, times[SAMPLES / 2],
         times[SAMPLES / 10], times[SAMPLES * 9 / 10]);
}

static void play_round(int ordered, size_t unit, cudaStream_t stream, long long* allocations,
                       long long* frees) {
  void* blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; ++i) {
    const size_t bytes = unit * (size_t)(1 + i * 5 % 7);
    const long long began = now();
    if (ordered) {
      CHECK(cudaMallocAsync(&blocks[i], bytes, stream));
    } else {
      CHECK(cudaMalloc(&blocks[i], bytes));
    }
    allocations[i] = now() - began;
  }
  for (int i = 0; i < BLOCKS; ++i) {
    const long long began = now();
    if (ordered) {
      CHECK(cudaFreeAsync(blocks[i], stream));
    } else {
      CHECK(cudaFree(blocks[i]));
    }
    frees[i] = now() - began;
  }
  CHECK(cudaStreamSynchronize(stream));
}

static void time_calls(int ordered, size_t unit, cudaStream_t stream) {
  static long long allocations[SAMPLES], frees[SAMPLES];
  for (const long long began = now(); now() - began < warm_up;) {
    play_round(ordered, unit, stream, allocations, frees);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    play_round(ordered, unit, stream, allocations + round * BLOCKS, frees + round * BLOCKS);
  }
  printf("{\"call\": \"%s\", \"smallest\": %zu, \"largest\": %zu, ",
         ordered ? "cudaMallocAsync" : "cudaMalloc", unit, 7 * unit);
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
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  printf("{\"times_ns\": [");
  for (int i = 0; i < 4; ++i) {
    if (i > 0) printf(", ");
    time_calls(i / 2, i % 2 ? 8 << 20 : 64 << 10, stream);
  }
  printf("], ");
  print_free_seen(64 << 20);
  printf("}\n");
  return 0;
}
