/* A program whose malloc is made of aligned allocations. The C library calls it with a lock held. */
#include <locale.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/fake_core.h"

void* malloc(size_t bytes) { return memalign(64, bytes); }
void* calloc(size_t count, size_t bytes) {
  void* const block = malloc(count * bytes);
  if (block) memset(block, 0, count * bytes);
  return block;
}

int main(void) {
  for (int i = 0; i < 3; ++i) setlocale(LC_ALL, "no such locale");
  void* const block = memalign(64, 65536);
  printf("%s\n", FAKE_SERVED(block) ? "served" : "not served");
  free(block);
  return 0;
}
