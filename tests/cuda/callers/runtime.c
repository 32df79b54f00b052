// A program of the runtime API. Linked with the shared and with the static runtime.
#include "tests/cuda/callers/runtime_calls.h"

int main(void) { return use_runtime(); }
