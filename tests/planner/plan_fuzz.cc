// Feeds the plan reader whatever libFuzzer invents: it must answer with a plan or an error, and a plan that
// was read must survive being written and read again. Built with -Dfuzz=true and clang; see
// tests/planner/meson.build.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "planner/plan_file.h"
#include "planner/plan_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::planner;
  const auto plan = ParsePlan({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!plan.ok()) return 0;
  const auto again = ParsePlan(FormatPlan(*plan), "again");
  if (!again.ok() || again->offsets != plan->offsets || again->signature != plan->signature) std::abort();
  return 0;
}
