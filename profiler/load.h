// Reads whatever describes a job's memory: the format is told by content, never by the file's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/csv_import.h"
#include "profiler/trace_reader.h"

namespace reprise::profiler {

// A trace, or an event CSV (a Trace with events alone, closed), or a lifetime CSV.
enum class InputFormat { kTrace, kEventCsv, kLifetimeCsv };

struct Input {
  InputFormat format = InputFormat::kTrace;
  Trace trace;                      // of the first two formats
  std::vector<Lifetime> lifetimes;  // of the third
};

// Errors: those of ReadFile; InvalidArgument for a file that is none of the three, naming what was
// expected; those of the format's reader.
absl::StatusOr<Input> Load(const std::string& path);

// The same from memory; `name` stands for the file in messages.
absl::StatusOr<Input> Parse(std::string_view contents, std::string_view name);

}  // namespace reprise::profiler
