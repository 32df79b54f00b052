#include "tests/simcuda/driver/config.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/simcuda/driver/errors.h"

namespace sim {
namespace {

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void Refuse(const char* name, const std::string& value) {
  Say(std::string(name) + "=" + value + " is not understood");
  abort();  // A test that believes it runs under a setting must not run without it.
}

uint64_t Number(const char* name, uint64_t fallback) {
  std::string value = Variable(name);
  if (value.empty()) return fallback;
  char* end = nullptr;
  uint64_t number = strtoull(value.c_str(), &end, 0);
  std::string unit = end;
  if (unit == "KiB") return number << 10;
  if (unit == "MiB") return number << 20;
  if (unit == "GiB") return number << 30;
  if (!unit.empty()) Refuse(name, value);
  return number;
}

Config Read() {
  Config config;
  config.devices = static_cast<int>(Number("SIMCUDA_DEVICES", config.devices));
  if (config.devices > 32) Refuse("SIMCUDA_DEVICES", Variable("SIMCUDA_DEVICES"));
  config.memory = Number("SIMCUDA_MEMORY", config.memory);
  config.seed = Number("SIMCUDA_SEED", config.seed);
  config.cuda_version = static_cast<int>(Number("SIMCUDA_VERSION", CUDA_VERSION));
  config.vmm = Number("SIMCUDA_VMM", 1) != 0;
  config.pools = Number("SIMCUDA_POOLS", 1) != 0;
  config.host_memory = Number("SIMCUDA_HOST_MEMORY", config.host_memory);
  config.host_anywhere = Number("SIMCUDA_HOST_ANYWHERE", 1) != 0;
  config.rdma = Number("SIMCUDA_RDMA", 1) != 0;
  config.rdma_mapped = Number("SIMCUDA_RDMA", 1) != 2;
  config.decompression = Number("SIMCUDA_DECOMPRESSION", 1) != 0;
  config.reuse_contexts = Number("SIMCUDA_REUSE_CONTEXTS", 0) != 0;
  config.free_waits = Number("SIMCUDA_FREE_WAITS", config.free_waits);
  std::istringstream slow(Variable("SIMCUDA_SLOW"));
  for (std::string function; std::getline(slow, function, ',');) config.slow.insert(function);
  config.quiet = Number("SIMCUDA_QUIET", 0) != 0;
  config.verbose = Number("SIMCUDA_VERBOSE", 0) != 0;
  std::string streams = Variable("SIMCUDA_STREAMS");
  if (!streams.empty() && streams != "eager" && streams != "deferred") Refuse("SIMCUDA_STREAMS", streams);
  config.deferred = streams == "deferred";
  return config;
}

}  // namespace

const Config& TheConfig() {
  static const Config& config = *new Config(Read());  // calls come after the process's destructors too
  return config;
}

void Say(const std::string& line) { fprintf(stderr, "simcuda: %s\n", line.c_str()); }

Failures::Failures() {
  const std::string value = Variable("SIMCUDA_FAIL");
  std::istringstream list(value);
  for (std::string item; std::getline(list, item, ',');) {
    std::istringstream parts(item);
    std::string function, nth, error;
    std::getline(parts, function, ':');
    std::getline(parts, nth, ':');
    std::getline(parts, error);
    Failure failure;
    char* end = nullptr;
    failure.nth = strtoull(nth.c_str(), &end, 10);
    failure.from_then_on = std::string(end) == "+";
    if (!error.empty()) failure.error = ErrorOf(error);
    bool understood = failure.nth > 0 && (*end == 0 || failure.from_then_on) && failure.error != CUDA_SUCCESS;
    if (!understood) Refuse("SIMCUDA_FAIL", value);
    failures_.emplace(function, failure);
  }
}

CUresult Failures::Count(const std::string& function) {
  CUresult answer = CUDA_SUCCESS;
  auto [first, last] = failures_.equal_range(function);
  for (auto it = first; it != last; ++it) {
    Failure& failure = it->second;
    ++failure.calls;
    bool hit = failure.from_then_on ? failure.calls >= failure.nth : failure.calls == failure.nth;
    if (hit) answer = failure.error;
  }
  return answer;
}

}  // namespace sim
