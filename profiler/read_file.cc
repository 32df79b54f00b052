#include "profiler/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"

namespace reprise::profiler {
namespace {

constexpr size_t kFirstChunk = size_t{1} << 16;

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path, int64_t most_bytes) {
  std::string contents;
  size_t size = 0;
  while (true) {
    if (size == contents.size()) contents.resize(std::max(kFirstChunk, 2 * size));
    const ssize_t got = read(fd, contents.data() + size, contents.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path + ": cannot be read");
    if (got == 0) break;
    size += static_cast<size_t>(got);
    if (static_cast<int64_t>(size) > most_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: more than {} bytes; use a shorter recording", path, most_bytes));
    }
  }
  contents.resize(size);
  return contents;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path + ": cannot be opened");
  absl::StatusOr<std::string> contents = ReadAll(fd, path, most_bytes);
  close(fd);
  return contents;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t most_bytes) {
  // A pipe without a writer would hold up the opening itself.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, path + ": cannot be opened");
  struct stat facts {};
  absl::StatusOr<std::string> contents =
      absl::InvalidArgumentError(path + ": is a pipe or a device, not a file");
  if (fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
    contents = ReadAll(fd, path, most_bytes);
  close(fd);
  return contents;
}

}  // namespace reprise::profiler
