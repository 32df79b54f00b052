// libFuzzer target: any bytes as a trace file, as what lies behind a block's checksum, and as the metadata
// and stacks there. What is accepted must be consistent.
#include <cstdint>
#include <cstdlib>

#include "profiler/event_check.h"
#include "profiler/trace_activities.h"
#include "profiler/trace_reader.h"
#include "profiler/trace_stacks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::profiler;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto trace = ParseTrace(bytes, "fuzz", 1 << 20); trace.ok()) {
    EventChecker checker;
    for (const Event& event : trace->events) {
      if (!checker.Add(event).ok() || !trace->stacks.has(event.stack)) abort();
    }
    for (const Activity& activity : trace->activities) {
      if (activity.name != FrameId(0) && !trace->stacks.has(activity.name)) abort();
    }
  }
  std::vector<Event> events;
  if (const auto head = DecodeEvents(bytes, &events); head.ok() && head->events != events.size()) abort();
  std::vector<Activity> activities;
  if (const auto head = DecodeActivities(bytes, &activities);
      head.ok() && head->activities != activities.size()) {
    abort();
  }
  DecodeMetadata(bytes).IgnoreError();
  DecodeFooter(bytes).IgnoreError();
  StackTable stacks;
  if (DecodeStacks(bytes, &stacks).ok()) {
    for (uint32_t i = 1; i <= stacks.stacks(); ++i) {
      for (const FrameId frame : stacks.stack(StackId(i))) {
        if (!stacks.has(frame)) abort();
      }
    }
  }
  return 0;
}
