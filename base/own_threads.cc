#include "base/own_threads.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"

namespace reprise {
namespace {

// "PID (NAME) STATE ...", where NAME may be anything.
bool IsOver(const std::string& stat) {
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'Z';
}

const std::vector<unsigned char>* process_cpus = nullptr;  // stays: threads outlive destructors

}  // namespace

void SetProcessCpus(const void* mask, size_t bytes) {
  const auto* const begin = static_cast<const unsigned char*>(mask);
  delete std::exchange(process_cpus, new std::vector<unsigned char>(begin, begin + bytes));
}

// The kernel's own call, for this thread alone: the C library's takes a mask of one size. Nothing is allocated, which
// might fail where nobody catches it.
void LeaveTheStartersCpu() {
  if (process_cpus != nullptr && !process_cpus->empty())
    syscall(SYS_sched_setaffinity, 0, process_cpus->size(), process_cpus->data());
  const sched_param none = {};
  if (const int policy = sched_getscheduler(0); policy == SCHED_FIFO || policy == SCHED_RR)
    sched_setscheduler(0, SCHED_OTHER, &none);
}

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
