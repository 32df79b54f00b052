// Preloaded beside the library: the core's request for host memory of the number FAILING_NEW is refused, once. How many
// there were is written to the file FAILING_NEW_COUNT at the end.
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

namespace {

std::atomic<long> asked{0};

bool IsIn(void* code, const char* library) {
  Dl_info where;
  return dladdr(code, &where) != 0 && std::strstr(where.dli_fname, library) != nullptr;
}

// By itself, or by a library that it has called.
bool IsOfTheCore(void* caller) {
  if (IsIn(caller, "libreprise_core")) return true;
  const auto called = {"libstdc++", "libfmt", "libabsl"};
  if (std::none_of(called.begin(), called.end(), [&](const char* library) { return IsIn(caller, library); }))
    return false;
  void* frames[16];
  const int depth = backtrace(frames, std::size(frames));
  return std::any_of(frames, frames + depth, [](void* frame) { return IsIn(frame, "libreprise_core"); });
}

void* Get(size_t bytes, void* caller) {
  static const long refused = std::getenv("FAILING_NEW") ? std::atol(std::getenv("FAILING_NEW")) : 0;
  const bool refuses = IsOfTheCore(caller) && ++asked == refused;
  return refuses ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void* GetOrThrow(size_t bytes, void* caller) {
  void* const memory = Get(bytes, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

struct Count {
  ~Count() {
    const char* const path = std::getenv("FAILING_NEW_COUNT");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", asked.load());
    std::fclose(file);
  }
} count;

}  // namespace

void* operator new(size_t bytes) { return GetOrThrow(bytes, __builtin_return_address(0)); }
void* operator new[](size_t bytes) { return GetOrThrow(bytes, __builtin_return_address(0)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Get(bytes, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
