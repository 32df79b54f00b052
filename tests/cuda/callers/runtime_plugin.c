// A library of the runtime API, as a Python extension is; loaded by loader.c.
#include "tests/cuda/callers/runtime_calls.h"

int plugin_main(void) { return use_runtime(); }
