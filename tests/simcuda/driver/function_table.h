// functions.def as data.
#pragma once

#include <cstddef>

namespace sim {

struct FunctionRow {
  const char* name;
  int since;
  bool per_thread;
  void (*address)();
};

extern const FunctionRow kFunctions[];
extern const size_t kFunctionCount;

}  // namespace sim
