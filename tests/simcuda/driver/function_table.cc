// Apart from the rest, because here the functions are names and addresses: cuda.h must not be included, which
// knows them by their types.
#include "tests/simcuda/driver/function_table.h"

#define SIM_FUNCTION(name, since, symbol) extern "C" void symbol();
#define SIM_PER_THREAD(name, since, symbol) extern "C" void symbol();
#include "tests/simcuda/driver/functions.def"
#undef SIM_FUNCTION
#undef SIM_PER_THREAD

namespace sim {

#define SIM_FUNCTION(name, since, symbol) {#name, since, false, symbol},
#define SIM_PER_THREAD(name, since, symbol) {#name, since, true, symbol},
const FunctionRow kFunctions[] = {
#include "tests/simcuda/driver/functions.def"
};
const size_t kFunctionCount = sizeof kFunctions / sizeof *kFunctions;

}  // namespace sim
