/* Plays recorded allocation events on a device: play EVENTS.csv
 *
 * Rows of the event CSV (header event,id,bytes,stream): alloc and free become cudaMallocAsync and
 * cudaFreeAsync, on one CUDA stream a stream number; at a mark, an iteration has ended, and the player waits
 * for the device and then a moment, as a job does that reads its loss: long enough for a plan to be worked
 * out beside it. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_streams = 64 };

static cudaStream_t streams[most_streams];

struct blocks {
  void** at;
  size_t count;
};

static void* stop(const char* what, long line) {
  fprintf(stderr, "play: line %ld: %s\n", line, what);
  exit(1);
}

static cudaStream_t stream_number(long number, long line) {
  if (number < 0 || number >= most_streams) stop("no such stream", line);
  if (!streams[number] && cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking) != cudaSuccess) {
    stop("no stream", line);
  }
  return streams[number];
}

static void** block_number(struct blocks* blocks, size_t id) {
  if (id >= blocks->count) {
    const size_t more = 2 * id + 1024;
    blocks->at = realloc(blocks->at, more * sizeof *blocks->at);
    if (!blocks->at) stop("out of memory", 0);
    memset(blocks->at + blocks->count, 0, (more - blocks->count) * sizeof *blocks->at);
    blocks->count = more;
  }
  return &blocks->at[id];
}

static void play_row(struct blocks* blocks, const char* row, long line) {
  size_t id, bytes;
  long stream;
  if (strncmp(row, "mark", 4) == 0) {
    if (cudaDeviceSynchronize() != cudaSuccess) stop("the device does not end", line);
  } else if (sscanf(row, "alloc,%zu,%zu,%ld", &id, &bytes, &stream) == 3) {
    void** const block = block_number(blocks, id);
    if (cudaMallocAsync(block, bytes, stream_number(stream, line)) != cudaSuccess) stop("no memory", line);
  } else if (sscanf(row, "free,%zu", &id) == 1) {
    const char* const last = strrchr(row, ',');
    void** const block = block_number(blocks, id);
    if (cudaFreeAsync(*block, stream_number(atol(last + 1), line)) != cudaSuccess) stop("not freed", line);
    *block = NULL;
  } else {
    stop("not a row", line);
  }
}

int main(int count, char** arguments) {
  FILE* const file = count == 2 ? fopen(arguments[1], "r") : NULL;
  if (!file) return 2;
  struct blocks blocks = {NULL, 0};
  char row[256];
  if (!fgets(row, sizeof row, file) || strncmp(row, "event,id,bytes,stream", 21) != 0)
    stop("not an event CSV", 1);
  for (long line = 2; fgets(row, sizeof row, file); ++line) play_row(&blocks, row, line);
  fclose(file);
  return 0;
}
