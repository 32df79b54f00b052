/* Allocates in its constructor, and frees in its destructor, which runs after those of whatever was loaded
 * later. */
#define _GNU_SOURCE
#include <stdlib.h>

void* plugin_block;
__attribute__((constructor)) static void take(void) {
  if (posix_memalign(&plugin_block, 64, 65536) != 0) abort();
}
__attribute__((destructor)) static void give_back(void) { free(plugin_block); }
