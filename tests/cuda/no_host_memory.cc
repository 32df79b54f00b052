// Preloaded into a test's job: the host's memory is short, for the core alone. Of its allocations by operator new the
// NO_HOST_MEMORY_FROM-th fails and those after it, NO_HOST_MEMORY_FOR in all; the first that does is told on stderr.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace {

std::atomic<long> asked{0};

long Number(const char* variable) {
  const char* const value = getenv(variable);
  return value == nullptr ? 0 : atol(value);
}

bool IsCores(const void* caller) {
  Dl_info where;
  return dladdr(caller, &where) != 0 && strstr(where.dli_fname, "libreprise_core") != nullptr;
}

void* Allocate(size_t bytes, const void* caller) {
  static const long from = Number("NO_HOST_MEMORY_FROM");
  static const long end = from + Number("NO_HOST_MEMORY_FOR");
  if (IsCores(caller)) {
    const long number = ++asked;
    constexpr std::string_view kTold = "no_host_memory: it begins\n";
    if (number == from && write(STDERR_FILENO, kTold.data(), kTold.size()) < 0) abort();
    if (number >= from && number < end) return nullptr;
  }
  return malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  if (void* const memory = Allocate(bytes, __builtin_return_address(0))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { free(memory); }
