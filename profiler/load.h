// Reads whatever describes a job's memory: the format is told by content, never by the file's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/csv_import.h"
#include "profiler/kineto_import.h"
#include "profiler/snapshot_import.h"
#include "profiler/trace_reader.h"

namespace reprise::profiler {

// A trace, or an event CSV (a Trace with events alone, closed), or a lifetime CSV, or a pickled snapshot of
// PyTorch's allocator (a Trace with events, stacks and notes, closed, and what the snapshot says beside), or
// a trace of PyTorch's profiler (a Trace with events and notes, closed, and what it says beside).
enum class InputFormat { kTrace, kEventCsv, kLifetimeCsv, kSnapshot, kKineto };

struct Input {
  InputFormat format = InputFormat::kTrace;
  Trace trace;                        // of all formats but lifetimes
  std::vector<Lifetime> lifetimes{};  // of a lifetime CSV
  Snapshot snapshot{};                // of a snapshot; its events, stacks and notes have moved to `trace`
  KinetoTrace kineto{};               // of the profiler; the same
};

// Errors: those of ReadFile; InvalidArgument for a file that is none of these, naming what was
// expected; those of the format's reader.
absl::StatusOr<Input> Load(const std::string& path);

// The same from memory; `name` stands for the file in messages.
absl::StatusOr<Input> Parse(std::string_view contents, std::string_view name);

}  // namespace reprise::profiler
