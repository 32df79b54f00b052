/* A library that is loaded for a moment by random_host: it has a block of its own while it is there. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

static void* own;

__attribute__((constructor)) static void begin(void) {
  if (posix_memalign(&own, 64, 70000) != 0) abort();
  memset(own, 0x3C, 70000);
}

__attribute__((destructor)) static void end(void) {
  for (size_t i = 0; i < 70000; ++i) {
    if (((unsigned char*)own)[i] != 0x3C) abort();
  }
  free(own);
}

void* plugin_takes(size_t alignment, size_t bytes) {
  void* block = NULL;
  return posix_memalign(&block, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) == 0 ? block
                                                                                                   : NULL;
}
