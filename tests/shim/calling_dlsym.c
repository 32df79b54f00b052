/* What dlsym.S must not be: a dlsym that calls the real one, which then takes this library for the caller. */
#define _GNU_SOURCE
#include <dlfcn.h>

void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (!real) real = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", REPRISE_TEST_GLIBC);
  void* const volatile found = real(handle, name);
  return found;
}
