// Opens libcuda.so.1 and asks for each function by name: on the handle, in the scope of the program after
// opening it for everybody, or by the handle of the program itself. TensorFlow and XLA do the first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "tests/cuda/callers/driver_calls.h"

int main(int count, char** arguments) {
  const char* const how = count > 1 ? arguments[1] : "handle";
  const int global = strcmp(how, "handle") != 0;
  void* scope = dlopen("libcuda.so.1", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!scope) return 2;
  if (strcmp(how, "default") == 0) scope = RTLD_DEFAULT;
  if (strcmp(how, "self") == 0) scope = dlopen(NULL, RTLD_NOW);
  struct driver_calls driver;
#define OPENED(field, name, version) *(void**)&driver.field = dlsym(scope, NAME(name));
  DRIVER_CALLS(OPENED)
  return use(&driver);
}
