#include "replay/stacks/unwinder.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "replay/core/log.h"
#include "replay/stacks/call_slots.h"

namespace reprise::replay {
namespace {

// The ends of the pipe that is none. No call takes them for a descriptor.
constexpr int kReadEnd = -1001;
constexpr int kWriteEnd = -1002;

// The kernel copies a signal mask from there before it finds that it is told nothing to do with it.
bool IsReadable(const void* address) {
  constexpr int kNothing = -1;
  constexpr size_t kMaskBytes = 8;
  const uintptr_t mask = reinterpret_cast<uintptr_t>(address) & ~uintptr_t{kMaskBytes - 1};
  return syscall(SYS_rt_sigprocmask, kNothing, mask, nullptr, kMaskBytes) == -1 && errno == EINVAL;
}

// What writing the byte into the pipe would have come to. It is asked again as long as errno is EINTR,
// whatever the answer.
long WriteByteAt(const void* address) {
  const bool readable = IsReadable(address);
  errno = readable ? 0 : EFAULT;
  return readable ? 1 : -1;
}

int OpenPipe(int ends[2], int) {
  ends[0] = kReadEnd;
  ends[1] = kWriteEnd;
  return 0;
}

ssize_t ReadCall(int fd, void* bytes, size_t count) {
  if (fd != kReadEnd) return read(fd, bytes, count);
  errno = 0;
  return 1;
}

ssize_t WriteCall(int fd, const void* bytes, size_t count) {
  return fd == kWriteEnd ? WriteByteAt(bytes) : write(fd, bytes, count);
}

// All six arguments that a system call may have; those that the caller did not give are in registers too, and
// not looked at.
long Syscall(long number, ...) {
  std::array<long, 6> given;
  va_list arguments;
  va_start(arguments, number);
  for (long& argument : given) argument = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_write && static_cast<int>(given[0]) == kWriteEnd)
    return WriteByteAt(reinterpret_cast<const void*>(given[1]));  // NOLINT(performance-no-int-to-ptr)
  return syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

template <typename Call>
Redirect To(const char* name, Call call) {
  return {name, dlsym(RTLD_DEFAULT, name), reinterpret_cast<void*>(call)};
}

bool KeepFromPipe(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return false;
  const std::array uses = {To("read", &ReadCall), To("write", &WriteCall), To("syscall", &Syscall)};
  const std::array opens = {To("pipe2", &OpenPipe)};
  return RedirectCalls(uses, map->l_name) > 0 && RedirectCalls(opens, map->l_name) > 0;
}

Unwind Open() {
  // Never closed: threads may be in it.
  void* const library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  void* const unwind = library == nullptr ? nullptr : dlsym(library, "unw_backtrace");
  if (unwind == nullptr) {
    const char* const why = dlerror();
    Log(LogLevel::kWarn,
        fmt::format(
            "REPRISE_STACKS=native needs libunwind.so.8, and cannot use one: {}; allocations get no stacks",
            why == nullptr ? "no reason is known" : why));
    return nullptr;
  }
  if (!KeepFromPipe(library)) {
    Log(LogLevel::kWarn,
        "REPRISE_STACKS=native: this libunwind.so.8 cannot be kept from opening descriptors in the job; "
        "allocations get no stacks");
    return nullptr;
  }
  return reinterpret_cast<Unwind>(unwind);
}

}  // namespace

Unwind OpenUnwinder() {
  static const Unwind unwind = Open();
  return unwind;
}

}  // namespace reprise::replay
