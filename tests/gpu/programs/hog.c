/* usage: hog BYTES
 *
 * Holds all free memory of the device but BYTES, says `ready` and what is left, and lets go when its input
 * ends. */
#include "tests/gpu/programs/cuda_check.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  const size_t keep = strtoull(words[1], NULL, 10);
  const size_t step = 64 << 20;
  size_t unused, total;
  CHECK(cudaMemGetInfo(&unused, &total));
  while (unused > keep + step) {
    /* One block where it can be had, else what can: the rest follows in the next round. */
    size_t bytes = (unused - keep) / step * step;
    void* block;
    while (bytes >= step && cudaMalloc(&block, bytes) != cudaSuccess) bytes = bytes / 2 / step * step;
    if (bytes < step) break;
    CHECK(cudaMemGetInfo(&unused, &total));
  }
  printf("ready %zu\n", unused);
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
