// The public headers as the library sees them: whatever they declare is exported, all else is hidden.
#pragma once

#pragma GCC visibility push(default)
#include "tests/simcuda/include/simcuda.h"
#pragma GCC visibility pop

// For exported names that no header declares: the forms with suffixes, and first versions.
#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
