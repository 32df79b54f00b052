#include "cli/memory_limits.h"

#include <sys/resource.h>

namespace reprise::cli {
namespace {

Bytes LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  const bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return Bytes(limited ? static_cast<int64_t>(limit.rlim_cur) : -1);
}

}  // namespace

std::vector<MemoryLimit> MemoryLimits() {
  return {{"address space", "ulimit -v unlimited", LimitOf(RLIMIT_AS)},
          {"data segment", "ulimit -d unlimited", LimitOf(RLIMIT_DATA)}};
}

}  // namespace reprise::cli
