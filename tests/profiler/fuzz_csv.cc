// libFuzzer target: any bytes as either CSV. What is accepted must be consistent, and events must survive the
// way out and back in.
#include <cstdint>
#include <cstdlib>

#include "profiler/csv_export.h"
#include "profiler/csv_import.h"
#include "profiler/event_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::profiler;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto events = ParseEventCsv(bytes, "fuzz"); events.ok()) {
    EventChecker checker;
    for (const Event& event : *events) {
      if (!checker.Add(event).ok()) abort();
    }
    const auto again = ParseEventCsv(ToEventCsv(*events), "fuzz");
    if (!again.ok() || *again != *events) abort();
  }
  if (const auto lifetimes = ParseLifetimeCsv(bytes, "fuzz"); lifetimes.ok()) {
    for (const Lifetime& row : *lifetimes) {
      if (row.upper <= row.lower || row.size.count() <= 0 || row.alignment.count() <= 0) abort();
    }
  }
  return 0;
}
