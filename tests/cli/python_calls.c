/* Calls that a Python script of the tests makes through ctypes. Python's own functions are found at run time,
 * as this is compiled without its headers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* 1 while an allocation is under way, for whatever Python code may run meanwhile. */
int busy;

void* allocate(size_t bytes) {
  void* block = NULL;
  busy = 1;
  if (posix_memalign(&block, 64, bytes) != 0) block = NULL;
  busy = 0;
  return block;
}

/* With an error set, as C code may be while it cleans up. 1: it is the same error afterwards. */
int allocate_with_error(size_t bytes, void* type) {
  void (*const set)(void*, const char*) =
      (void (*)(void*, const char*))dlsym(RTLD_DEFAULT, "PyErr_SetString");
  int (*const matches)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "PyErr_ExceptionMatches");
  void (*const clear)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "PyErr_Clear");
  set(type, "set by the test");
  allocate(bytes);
  const int same = matches(type);
  clear();
  return same;
}

struct job {
  size_t bytes;
  const char* name;
};

static void* run(void* data) {
  const struct job* const job = data;
  pthread_setname_np(pthread_self(), job->name);
  return allocate(job->bytes);
}

/* On a thread that Python knows nothing of. */
void* allocate_on_thread(size_t bytes, const char* name) {
  struct job job = {bytes, name};
  pthread_t thread;
  void* block = NULL;
  if (pthread_create(&thread, NULL, run, &job) == 0) pthread_join(thread, &block);
  return block;
}
