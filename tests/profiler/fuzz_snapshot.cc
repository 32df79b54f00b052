// libFuzzer target: any bytes as a pickle, and as a snapshot. What is accepted must be consistent, and every
// value that can be reached in a few steps readable.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "profiler/event_check.h"
#include "profiler/pickle.h"
#include "profiler/snapshot_import.h"

namespace {

using namespace reprise::profiler;

// Values may hold themselves, so not deeper than that.
void Touch(PickleValue value, int depth) {
  if (value.integer().has_value() && value.string().has_value()) abort();
  if (const auto text = value.string(); text && !text->empty() && text->data() == nullptr) abort();
  if (depth == 0) return;
  value.Find("segments");
  if (!value.is_sequence()) return;
  for (size_t i = 0; i < std::min<size_t>(value.size(), 4); ++i) Touch(value[i], depth - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto pickle = ParsePickle(bytes, "fuzz"); pickle.ok()) Touch(pickle->root(), 4);
  if (const auto snapshot = ParseSnapshot(bytes, "fuzz"); snapshot.ok()) {
    EventChecker checker;
    for (const Event& event : snapshot->events) {
      if (!checker.Add(event).ok()) abort();
    }
    if (snapshot->addresses.size() != snapshot->events.size()) abort();
    if (snapshot->live_at_begin > snapshot->events.size()) abort();
    if (snapshot->reserved_peak < snapshot->reserved_at_begin) abort();
  }
  return 0;
}
