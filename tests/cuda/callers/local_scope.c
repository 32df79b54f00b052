// A library that is linked with the driver and asks for its functions in its own scope, where they are although
// the program's has none of them: loader.c loads it for nobody else.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "tests/cuda/callers/driver_calls.h"

int plugin_main(void) {
  struct driver_calls driver;
#define FOUND(field, name, version) *(void**)&driver.field = dlsym(RTLD_DEFAULT, NAME(name));
  DRIVER_CALLS(FOUND)
  EXPECT(cuInit(0));  // else it would not be linked with it
  return use(&driver);
}
