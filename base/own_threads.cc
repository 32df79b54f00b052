#include "base/own_threads.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/files.h"

namespace reprise {
namespace {

// "PID (NAME) STATE ...", where NAME may be anything.
bool IsOver(const std::string& stat) {
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'Z';
}

}  // namespace

bool OnlyOwnThreadsAreLeft() {
  const std::filesystem::path threads = "/proc/self/task";
  const std::string main_thread = std::to_string(getpid());
  const absl::StatusOr<std::string> stat = ReadRegularFile(threads / main_thread / "stat");
  if (!stat.ok() || !IsOver(*stat)) return false;
  std::error_code error;
  std::filesystem::directory_iterator thread(threads, error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    if (thread->path().filename() == main_thread) continue;
    const absl::StatusOr<std::string> name = ReadRegularFile(thread->path() / "comm");
    if (!name.ok() || !name->starts_with(kOwnThreads)) return false;
  }
  return !error;
}

}  // namespace reprise
