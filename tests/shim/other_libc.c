/* Memory, lookups and a fork, for a C library that is not glibc. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  void* block = NULL;
  printf("%d", posix_memalign(&block, 64, 1 << 20));
  block = realloc(block, 1 << 21);
  printf(" %d", block != NULL);
  free(block);
  free(aligned_alloc(4096, 8192));
  printf(" %d", dlsym(RTLD_DEFAULT, "malloc") == (void*)malloc);
  printf(" %d", dlsym(RTLD_DEFAULT, "no such name") == NULL);
  printf(" %d\n", dlerror() != NULL);
  fflush(stdout);
  if (fork() == 0) _exit(3);
  int status = 0;
  wait(&status);
  return WEXITSTATUS(status);
}
