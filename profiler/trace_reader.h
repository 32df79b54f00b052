// Reads a `.reprise` trace back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/activities.h"
#include "profiler/stacks.h"
#include "profiler/trace_format.h"

namespace reprise::profiler {

struct Trace {
  TraceMetadata metadata;
  std::vector<Event> events;  // a consistent sequence (event_check.h)
  StackTable stacks;          // that the events name
  std::vector<Activity>
      activities;        // of the device, in no order that matters; their names are frames of `stacks`
  uint64_t dropped = 0;  // events the recorder lost; a block lost so is missing with its free
  uint64_t activities_dropped = 0;
  Bytes passed;         // in requests that are not in `events`, because the real allocator has served them
  bool closed = false;  // it has its footer
  TraceEnd end = TraceEnd::kClosed;  // what that says
  bool read_in_part = false;         // there is more in the file
  // For people: what is missing and why. In our words alone, nothing of the input but numbers.
  std::vector<std::string> notes;

  // All that happened in the job's memory is in `events`. Whoever takes the peak for the job's must ask.
  bool whole() const { return WhyNotWhole().empty(); }
  // The first reason why it is not, a clause; empty: it is.
  std::string_view WhyNotWhole() const;
  // The same of what came after the last event alone.
  std::string_view WhyEnded() const;
};

// More events and activities than this (7 GiB of them) are not read: a few bytes of a hostile file can stand
// for many events.
inline constexpr uint64_t kMostTraceEvents = uint64_t{1} << 27;

// A file that ends within a block (killed, or the disk was full) is read up to its last complete block, and a
// note says how many bytes were ignored. One with more than `most_events` is read up to the block that has
// them, and a note says so: a recording may be longer than any reader's memory. Everything else that is wrong
// is an error: DataLoss that names `name` and the byte. Takes no memory by a length that the file claims and
// does not have: for what its blocks claim addresses are set aside, where there are some, and not touched.
absl::StatusOr<Trace> ParseTrace(std::string_view contents, std::string_view name,
                                 uint64_t most_events = kMostTraceEvents);
// The same for a file. Errors also: those of ReadFile.
absl::StatusOr<Trace> ReadTrace(const std::string& path);
// What a trace says about its job, from the file's beginning alone.
absl::StatusOr<TraceMetadata> ReadTraceMetadata(const std::string& path);

}  // namespace reprise::profiler
