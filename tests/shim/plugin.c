/* Allocates in its constructor, and frees in its destructor, which runs after those of whatever was loaded
 * later. There it forks too: its child is served nothing, or ends in no good way. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/fake_core.h"

void* plugin_block;
__attribute__((constructor)) static void take(void) {
  if (posix_memalign(&plugin_block, 64, 65536) != 0) abort();
}

static void fork_late(void) {
  const pid_t child = fork();
  if (child == 0) {
    void* block = NULL;
    _exit(posix_memalign(&block, 64, 65536) != 0 || FAKE_SERVED(block));
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) abort();
}

__attribute__((destructor)) static void give_back(void) {
  fork_late();
  free(plugin_block);
}
