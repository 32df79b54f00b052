// What the loader has in the process, now and so far.
#pragma once

#include <link.h>

#include <cstdint>

namespace reprise::replay {

// Libraries that were loaded and unloaded since the process began.
struct LibraryCounts {
  unsigned long long loaded = 0, unloaded = 0;
};

inline LibraryCounts CountLibraries() {
  LibraryCounts counts;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<LibraryCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
        return 1;  // every library tells the same
      },
      &counts);
  return counts;
}

// Calls `each` for the libraries, none of which is unloaded meanwhile. What it throws must not pass through the loader: it
// ends there, and the answer is false.
template <typename Each>
bool ForEachLibrary(const Each& each) noexcept {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* data) {
               try {
                 (*static_cast<const Each*>(data))(*info);
                 return 0;
               } catch (...) {
                 return 1;
               }
             },
             const_cast<Each*>(&each)) == 0;
}

// Whether `address` is in what is mapped of `library`.
inline bool Covers(const dl_phdr_info& library, uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - (library.dlpi_addr + segment.p_vaddr) < segment.p_memsz)
      return true;
  }
  return false;
}

}  // namespace reprise::replay
