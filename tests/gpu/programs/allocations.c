/* Allocates and frees in rounds that repeat, as an iteration of a job does, and verifies every byte of every
 * block: first by cudaMalloc, then in stream order, where half of the blocks are read and freed on another
 * stream than the one that filled them. */
#include <string.h>

#include "tests/gpu/programs/cuda_check.h"

enum { ROUNDS = 24, BLOCKS = 24, UNIT = 64 << 10, MOST = 7 * UNIT };

static size_t size_of(int i) { return (size_t)UNIT * (size_t)(1 + i * 5 % 7); }
static int fill_of(int round, int i) { return 1 + (round * BLOCKS + i) % 251; }

static int is_filled(const unsigned char* bytes, size_t count, int fill) {
  return bytes[0] == fill && memcmp(bytes, bytes + 1, count - 1) == 0;
}

static int synchronous_round(int round, unsigned char* host) {
  void* blocks[BLOCKS];
  int wrong = 0;
  for (int i = 0; i < BLOCKS; ++i) {
    CHECK(cudaMalloc(&blocks[i], size_of(i)));
    CHECK(cudaMemset(blocks[i], fill_of(round, i), size_of(i)));
  }
  for (int i = 0; i < BLOCKS; ++i) {
    CHECK(cudaMemcpy(host, blocks[i], size_of(i), cudaMemcpyDeviceToHost));
    wrong += !is_filled(host, size_of(i), fill_of(round, i));
    CHECK(cudaFree(blocks[i]));
  }
  return wrong;
}

static int ordered_round(int round, unsigned char* host, cudaStream_t* streams, cudaEvent_t filled) {
  void* blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; ++i) {
    CHECK(cudaMallocAsync(&blocks[i], size_of(i), streams[0]));
    CHECK(cudaMemsetAsync(blocks[i], fill_of(round, i), size_of(i), streams[0]));
  }
  CHECK(cudaEventRecord(filled, streams[0]));
  CHECK(cudaStreamWaitEvent(streams[1], filled, 0));
  for (int i = 0; i < BLOCKS; ++i) {
    cudaStream_t stream = streams[i % 2];
    CHECK(cudaMemcpyAsync(host + (size_t)i * MOST, blocks[i], size_of(i), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(blocks[i], stream));
  }
  CHECK(cudaStreamSynchronize(streams[0]));
  CHECK(cudaStreamSynchronize(streams[1]));
  int wrong = 0;
  for (int i = 0; i < BLOCKS; ++i)
    wrong += !is_filled(host + (size_t)i * MOST, size_of(i), fill_of(round, i));
  return wrong;
}

int main(void) {
  unsigned char* host;
  cudaStream_t streams[2];
  cudaEvent_t filled;
  CHECK(cudaMallocHost((void**)&host, (size_t)BLOCKS * MOST));
  CHECK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));

  int wrong = 0;
  for (int round = 0; round < ROUNDS; ++round) wrong += synchronous_round(round, host);
  printf("cudaMalloc: %d blocks, %d wrong\n", ROUNDS * BLOCKS, wrong);
  int wrong_ordered = 0;
  for (int round = 0; round < ROUNDS; ++round) wrong_ordered += ordered_round(round, host, streams, filled);
  printf("cudaMallocAsync: %d blocks, %d wrong\n", ROUNDS * BLOCKS, wrong_ordered);

  size_t unused, total;
  CHECK(cudaMemGetInfo(&unused, &total));
  printf("free is at most total: %d\n", unused <= total);
  return wrong + wrong_ordered != 0;
}
