/* A library with names that begin as the driver's do: some that are hooked, and some that only look so. */
#define _GNU_SOURCE
#include <dlfcn.h>

int cuGetProcAddress(void) { return 0; }
int cuGetProcAddress_v2(void) { return 0; }
int cuMemFree_v2(void) { return 0; }

int cuMemFree_v22(void) { return 0; }
int cuMemAlloc(void) { return 0; }
int cuMemcpy(void) { return 0; }
int cu(void) { return 0; }
int cudnnCreate(void) { return 0; }
int cublasCreate_v2(void) { return 0; }

void* find_default(const char* name) {
  void* const volatile found = dlsym(RTLD_DEFAULT, name);
  return found;
}

void* find_next(const char* name) {
  void* const volatile found = dlsym(RTLD_NEXT, name); /* not a tail call: this library must be the caller */
  return found;
}
