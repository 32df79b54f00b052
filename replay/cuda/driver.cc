#include "replay/cuda/driver.h"

namespace reprise::replay::cuda {

std::optional<Driver> Driver::Find(const reprise_cuda_shim& shim, const char** missing) {
  Driver driver;
  driver.calls = shim.driver;
#define REPRISE_FIND(name, symbol, parameters)                             \
  driver.name = reinterpret_cast<Result(*) parameters>(shim.find(symbol)); \
  if (driver.name == nullptr) {                                            \
    *missing = symbol;                                                     \
    return std::nullopt;                                                   \
  }
  REPRISE_DRIVER_FUNCTIONS(REPRISE_FIND)
#undef REPRISE_FIND
  driver.StreamGetGreenCtx =
      reinterpret_cast<Result (*)(cu_stream, void**)>(shim.find("cuStreamGetGreenCtx"));
  return driver;
}

}  // namespace reprise::replay::cuda
