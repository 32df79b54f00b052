// Why: a profiler's trace comes from wherever a user found it. Whatever the bytes say, the reader answers
// with an error or with a consistent sequence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiler/event_check.h"
#include "profiler/kineto_import.h"

namespace reprise::profiler {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto trace = ParseKineto(bytes, "fuzz"); trace.ok()) {
    EventChecker checker;
    for (const Event& event : trace->events) {
      if (!checker.Add(event).ok()) abort();
    }
  }
  return 0;
}

}  // namespace reprise::profiler
