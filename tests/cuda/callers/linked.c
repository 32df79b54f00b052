// Linked with libcuda.so.1, as programs of the driver API are.
#include "tests/cuda/callers/driver_calls.h"

int main(void) {
#define LINKED(field, name, version) .field = name,
  const struct driver_calls driver = {DRIVER_CALLS(LINKED)};
  return use(&driver);
}
