// Prints what a trace holds, for the tests that are not in C++: `trace_facts FILE`.
#include <cstdio>

#include "profiler/trace_reader.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto trace = reprise::profiler::ReadTrace(argv[1]);
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", trace.status().ToString().c_str());
    return 3;
  }
  size_t allocations = 0;
  for (const auto& event : trace->events) allocations += event.kind == reprise::profiler::EventKind::kAlloc;
  std::printf(
      "{\"events\": %zu, \"allocations\": %zu, \"dropped\": %llu, \"closed\": %s, \"words\": %zu, "
      "\"passed\": %lld}\n",
      trace->events.size(), allocations, static_cast<unsigned long long>(trace->dropped),
      trace->closed ? "true" : "false", trace->metadata.command.size(),
      static_cast<long long>(trace->passed.count()));
  return 0;
}
