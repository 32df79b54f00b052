// Opens libcuda.so.1 and asks for each function by name: on the handle, in the scope of the program after
// opening it for everybody, or by the handle of the program itself. TensorFlow and XLA do the first. `again`:
// after it has been looked at and closed, and something else lies where it was; a second argument names a library
// that was asked for one of the names before. `changed`: a part of them once the environment says that nothing is
// to be caught, as a program does for those it starts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/callers/driver_calls.h"

static void probe(const char* asked_before) {
  if (asked_before) dlsym(dlopen(asked_before, RTLD_NOW), "cuGetProcAddress_v2");
  void* const scope = dlopen("libcuda.so.1", RTLD_NOW);
  Dl_info info;
  if (dlsym(scope, NAME(cuMemAlloc)) && dladdr(dlsym(scope, "cuInit"), &info) && dlclose(scope) == 0)
    mmap(info.dli_fbase, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int count, char** arguments) {
  const char* const how = count > 1 ? arguments[1] : "handle";
  const int global = strcmp(how, "default") == 0 || strcmp(how, "self") == 0;
  if (strcmp(how, "again") == 0) probe(arguments[2]);
  void* scope = dlopen("libcuda.so.1", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!scope) return 2;
  if (strcmp(how, "default") == 0) scope = RTLD_DEFAULT;
  if (strcmp(how, "self") == 0) scope = dlopen(NULL, RTLD_NOW);
  struct driver_calls driver;
  if (strcmp(how, "changed") == 0 && dlsym(scope, NAME(cuMemAlloc))) setenv("REPRISE_DISABLE", "1", 1);
#define OPENED(field, name, version) *(void**)&driver.field = dlsym(scope, NAME(name));
  DRIVER_CALLS(OPENED)
  return use(&driver);
}
