// Whole files: read into memory, and written so that whoever reads them finds the old text or the new one.
//
// There are two of each: for what a user has named, and for a job, which may not be kept waiting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise {

inline constexpr int64_t kMostFileBytes = int64_t{4} << 30;

// "`what` `path`", with the system's reason: for what has just set errno.
absl::Status SystemError(std::string_view what, std::string_view path);

// From the root, whatever folder the job goes to later; as it is where the one that it is in cannot be told.
std::string AbsolutePath(const std::string& path);

// Reads `path`, which may also be a pipe or a terminal. Errors: what open and read say, InvalidArgument where
// it is a device that never ends, and ResourceExhausted past `most_bytes`; each names the file.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes = kMostFileBytes);

// The same for a job: InvalidArgument where `path` is a pipe or a device.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t most_bytes = kMostFileBytes);

// What open has returned, not as a standard descriptor: a program that has one of them closed would print into a file
// that is given its number. Negative: errno says why.
int AboveStandard(int fd);

// All of `text`. False: errno says why.
bool WriteAll(int fd, std::string_view text);

// Writes the file at once: under another name beside it, synced, then renamed over `path`, so that it is
// there whole or not at all, after a power failure too. What is there and is not a regular file (a pipe, a
// terminal) is written to as it is. A file that is there keeps its mode, and its owner and group as far as
// they may be given; one that may not be written stays. A signal that ends the process leaves nothing beside
// it. Errors name `path` and the system's reason.
absl::Status WriteFile(const std::string& path, std::string_view text);

// The same for a job, which waits neither for the disk nor for the reader of a pipe: nothing is synced, and
// whatever is at `path` is replaced.
absl::Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace reprise
