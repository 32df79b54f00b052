// Names and descriptions of the driver's results.
#pragma once

#include <string>

#include "tests/simcuda/driver/api.h"

namespace sim {

// From "CUDA_ERROR_OUT_OF_MEMORY" or "2"; CUDA_SUCCESS if it is neither a name nor a number of an error.
CUresult ErrorOf(const std::string& name_or_number);

}  // namespace sim
