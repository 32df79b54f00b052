/* A program that brings some of the allocator itself: whoever takes aligned memory for it must not rely on
 * seeing it freed. Its own free keeps count and gives nothing back. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/fake_core.h"

static _Alignas(16) char heap[1 << 22];
static size_t used;
void* malloc(size_t bytes) {
  used = (used + 15) / 16 * 16;
  if (bytes > sizeof heap - used - 16) return NULL;
  memcpy(heap + used, &bytes, sizeof bytes);
  used += 16 + bytes;
  return heap + used - bytes;
}
void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void* realloc(void* block, size_t bytes) {
  void* const moved = malloc(bytes);
  size_t before = 0;
  if (block) memcpy(&before, (char*)block - 16, sizeof before);
  if (moved) memcpy(moved, block, before < bytes ? before : bytes);
  return moved;
}
void free(void* block) {}

int main(void) {
  void* block = NULL;
  if (posix_memalign(&block, 64, 65536) != 0) return 1;
  printf("%s\n", FAKE_SERVED(block) ? "served" : "not served");
  free(block);
  return 0;
}
