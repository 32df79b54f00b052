/* Every hooked call, answered with success; null_driver.c defines those over again that have something to
 * give. */
#include "replay/abi.h"

#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  __attribute__((weak)) int symbol parameters { return 0; }
#include "replay/cuda_calls.def"
