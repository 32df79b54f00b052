/* A program to be built with a sanitizer. `twice` frees a block twice, which AddressSanitizer ends it for. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  void* block = NULL;
  if (posix_memalign(&block, 64, 1 << 20) != 0) return 1;
  memset(block, 1, 1 << 20);
  puts("took memory");
  fflush(stdout);
  void* volatile again = block;
  free(block);
  if (argc > 1 && strcmp(argv[1], "twice") == 0) free(again);
  return 7;
}
