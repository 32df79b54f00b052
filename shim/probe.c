#define _GNU_SOURCE
#include "shim/probe.h"

#include <malloc.h>
#include <stdlib.h>

#include "shim/core.h"

__thread int reprise_probe_hits __attribute__((tls_model("initial-exec")));

int reprise_blocks_come_back(void) {
  /* Through the loader's global names, and not to be guessed by the compiler. */
  void (*volatile call_free)(void*) = free;
  void* (*volatile call_realloc)(void*, size_t) = realloc;
  void* (*volatile call_reallocarray)(void*, size_t, size_t) = reallocarray;
  size_t (*volatile call_usable_size)(void*) = malloc_usable_size;
  reprise_probe_hits = 0;
  __atomic_store_n(&reprise_arena_size, 1, __ATOMIC_RELEASE); /* [0, 1): NULL is ours */
  call_free(NULL);
  call_usable_size(NULL);
  void* const block = call_realloc(NULL, 1);
  void* const other = call_reallocarray(NULL, 1, 1);
  __atomic_store_n(&reprise_arena_size, 0, __ATOMIC_RELEASE);
  call_free(block);
  call_free(other);
  return reprise_probe_hits == 4;
}

int reprise_malloc_comes_to_us(size_t bytes) {
  void* (*volatile call_malloc)(size_t) = malloc;
  reprise_probe_hits = 0;
  void* const block = call_malloc(bytes);
  const int hits = reprise_probe_hits;
  free(block);
  return hits != 0;
}
