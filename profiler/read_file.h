// The whole of a file, for readers that judge untrusted content from memory.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace reprise::profiler {

inline constexpr int64_t kMostFileBytes = int64_t{4} << 30;

// Reads `path`, which may also be a pipe. Errors: what open and read say, and ResourceExhausted past
// `most_bytes`; each names the file.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes = kMostFileBytes);

// The same for a job that may not be kept waiting: InvalidArgument where `path` is a pipe or a device.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t most_bytes = kMostFileBytes);

}  // namespace reprise::profiler
