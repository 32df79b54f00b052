#include "replay/core/output_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

namespace reprise::replay {
namespace {

constexpr int kMostNames = 1000;

absl::Status MakeFolder(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0777);  // the last one tells: others may make them at the same time
  }
  if (mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat there;
  if (stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return absl::OkStatus();
  errno = error;
  return SystemError("cannot make the folder", path);
}

bool Exists(const std::string& path) {
  struct stat there;
  return lstat(path.c_str(), &there) == 0;
}

}  // namespace

absl::StatusOr<OutputDir> OutputDir::Open(std::string_view path, int pid, std::string_view label) {
  std::string folder(path);
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (absl::Status made = MakeFolder(folder); !made.ok()) return made;
  for (int attempt = 0; attempt < kMostNames; ++attempt) {
    // The same process comes again after an exec.
    std::string suffix = label.empty() ? "" : fmt::format(".{}", label);
    if (attempt > 0) suffix += fmt::format(".{}", pid);
    if (attempt > 1) suffix += fmt::format(".{}", attempt);
    OutputDir names(folder, suffix);
    // The trace may have been moved or removed, and the others kept.
    if (Exists(names.summary_path()) || Exists(names.PathOf("plans", ".json"))) continue;
    absl::Status claimed = Claim(names.trace_path());
    if (claimed.ok()) return names;
    if (!absl::IsAlreadyExists(claimed)) return claimed;
  }
  return absl::AlreadyExistsError(fmt::format("every name for a trace is taken in {}", folder));
}

absl::Status OutputDir::Claim(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return SystemError("cannot create", path);
  close(file);
  return absl::OkStatus();
}

std::string OutputDir::PathOf(std::string_view name, std::string_view extension) const {
  return fmt::format("{}/{}{}{}", path_, name, suffix_, extension);
}

}  // namespace reprise::replay
