// The CUDA driver as the loader finds it. Asked in a process of its own: a driver at odds with its kernel
// module may do anything to whoever opens it.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace reprise::cli {

struct CudaDriver {
  struct Device {
    std::string name;
    Bytes memory;
    bool has_pools = false;  // so that it can be asked in stream order: some virtual ones cannot
  };
  int version = 0;    // 13000 is CUDA 13.0
  std::string error;  // not empty: what stands in the way of a device
  std::vector<Device> devices;
};

// Whether the loader finds one. A simulated one on LD_LIBRARY_PATH is one.
bool HasCudaDriver();

CudaDriver AskCudaDriver();

}  // namespace reprise::cli
