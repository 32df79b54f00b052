// What the environment says; README.md lists the variables.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tests/simcuda/driver/api.h"

namespace sim {

struct Config {
  int devices = 1;
  uint64_t memory = uint64_t{8} << 30;  // of each device
  int cuda_version = CUDA_VERSION;      // that the driver says it is of
  bool vmm = true;
  bool pools = true;                          // and with them all in stream order
  uint64_t host_memory = uint64_t{64} << 30;  // that virtual memory management may map
  bool host_anywhere = true;                  // host memory may be asked for without naming a node
  bool rdma = true;                           // other devices of the machine may reach a device's memory
  bool rdma_mapped = true;                    // mapped memory, too, that was made for it
  bool decompression = true;                  // by hardware
  bool reuse_contexts = false;                // the handle of one that has ended comes again with the next
  uint64_t free_waits = 0;                    // the fewest bytes whose synchronous free waits for the device
  bool deferred = false;
  bool quiet = false;
  bool verbose = false;
  uint64_t seed = 1;
  std::set<std::string> slow;  // functions whose calls take long to arrive
};

const Config& TheConfig();

// Calls that SIMCUDA_FAIL names. Access only under the simulator's lock.
class Failures {
 public:
  Failures();
  // Counts a call; what it shall answer instead of being carried out, or CUDA_SUCCESS.
  CUresult Count(const std::string& function);

 private:
  struct Failure {
    uint64_t nth = 1;
    bool from_then_on = false;
    CUresult error = CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t calls = 0;
  };
  std::multimap<std::string, Failure> failures_;
};

// A line on stderr, with the library's name before it.
void Say(const std::string& line);

}  // namespace sim
