// Modules: a program's global variables, in one context. There is no code.
#pragma once

#include "tests/simcuda/driver/simulator.h"

namespace sim {

struct Module {
  Context* context = nullptr;
  uint64_t bytes = 0;
  uint64_t physical = 0;  // of the device's, where there are bytes
};

// Its modules end with a context.
void EndModulesIn(Simulator& sim, const Context& context);

}  // namespace sim
