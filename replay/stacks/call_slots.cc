#include "replay/stacks/call_slots.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "replay/stacks/loaded_libraries.h"

namespace reprise::replay {
namespace {

#if defined(__x86_64__)
constexpr bool IsSlot(uint64_t type) { return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT; }
#elif defined(__aarch64__)
constexpr bool IsSlot(uint64_t type) { return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT; }
#else
#error "the relocations of call slots of this architecture are not known here"
#endif

struct Search {
  std::span<const Redirect> redirects;
  const char* library;  // null: all
  int changed = 0;
};

// As the system's own list of the process's memory has it; nothing where that cannot be read (no descriptor is
// left, or no /proc is there).
std::optional<bool> IsWritable(const void* address) {
  std::ifstream maps("/proc/thread-self/maps");
  for (std::string line; std::getline(maps, line);) {  // BEGIN-END PROTECTION ...
    uintptr_t begin = 0, end = 0;
    char protection[5] = "";
    if (sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, protection) != 3) continue;
    if (reinterpret_cast<uintptr_t>(address) - begin < end - begin) return protection[1] == 'w';
  }
  return std::nullopt;
}

// One loaded library, as its dynamic section describes it. Lives within the loader's call alone, so that it
// cannot be unloaded meanwhile.
class Library {
 public:
  explicit Library(const dl_phdr_info& info) : info_(info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info.dlpi_phdr[i];
      if (segment.p_type == PT_DYNAMIC) dynamic_ = At<ElfW(Dyn)>(segment.p_vaddr);
    }
    for (const ElfW(Dyn)* entry = dynamic_; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Xword) value = entry->d_un.d_val;
      if (entry->d_tag == DT_SYMTAB) symbols_ = Relocated<ElfW(Sym)>(value);
      if (entry->d_tag == DT_STRTAB) names_ = Relocated<char>(value);
      if (entry->d_tag == DT_JMPREL) calls_ = Relocated<ElfW(Rela)>(value);
      if (entry->d_tag == DT_PLTRELSZ) calls_bytes_ = value;
      if (entry->d_tag == DT_RELA) others_ = Relocated<ElfW(Rela)>(value);
      if (entry->d_tag == DT_RELASZ) others_bytes_ = value;
      if (entry->d_tag == DT_RELACOUNT) without_names_ = value;
    }
  }

  void Redirect(Search& search) const {
    if (symbols_ == nullptr || names_ == nullptr) return;
    if (calls_ != nullptr) RedirectAll({calls_, calls_bytes_ / sizeof *calls_}, search);
    const size_t others = others_bytes_ / sizeof *others_;
    if (others_ != nullptr && without_names_ <= others) {
      RedirectAll({others_ + without_names_, others - without_names_}, search);
    }
  }

 private:
  template <typename T>
  const T* At(ElfW(Addr) offset) const {
    return reinterpret_cast<const T*>(info_.dlpi_addr + offset);  // NOLINT(performance-no-int-to-ptr)
  }
  // The loader has made these absolute, but for the kernel's own library.
  template <typename T>
  const T* Relocated(ElfW(Xword) value) const {
    return value < info_.dlpi_addr ? At<T>(value)
                                   : reinterpret_cast<const T*>(value);  // NOLINT(performance-*)
  }

  void RedirectAll(std::span<const ElfW(Rela)> relocations, Search& search) const {
    for (const ElfW(Rela) & relocation : relocations) {
      if (!IsSlot(ELF64_R_TYPE(relocation.r_info))) continue;
      const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(relocation.r_info)];
      const char* const name = names_ + symbol.st_name;
      for (const struct Redirect& redirect : search.redirects) {
        if (strcmp(name, redirect.name) != 0) continue;
        auto* const slot = const_cast<void**>(At<void*>(relocation.r_offset));
        void* const present = __atomic_load_n(slot, __ATOMIC_RELAXED);
        // Within the library itself: its own way to have the loader fill the slot at the first call.
        const bool unfilled =
            symbol.st_shndx == SHN_UNDEF && Covers(info_, reinterpret_cast<uintptr_t>(present));
        if ((present == redirect.from || unfilled) && Write(slot, redirect.to)) ++search.changed;
      }
    }
  }

  // What the loader has made read-only, because all slots were filled, is so again afterwards. What is still
  // writable stays so: the loader may be filling its neighbours at this moment, and a library's own variables
  // may lie beside them. What nobody says is left alone.
  static bool Write(void** slot, void* value) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* const begin =
        reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));  // NOLINT(performance-*)
    const std::optional<bool> writable = IsWritable(slot);
    if (!writable || (!*writable && mprotect(begin, page, PROT_READ | PROT_WRITE) != 0)) return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (!*writable) mprotect(begin, page, PROT_READ);
    return true;
  }

  const dl_phdr_info& info_;
  const ElfW(Dyn) * dynamic_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Rela) * calls_ = nullptr;
  const ElfW(Rela) * others_ = nullptr;
  size_t calls_bytes_ = 0, others_bytes_ = 0, without_names_ = 0;
};

}  // namespace

int RedirectCalls(std::span<const Redirect> redirects, const char* library) {
  Search search{redirects, library};
  // Where there is no memory for more, the others' calls stay theirs.
  ForEachLibrary([&search](const dl_phdr_info& info) {
    const char* const name = info.dlpi_name == nullptr ? "" : info.dlpi_name;
    // The executable has no name. The loader and the kernel's library call nothing of Python's.
    if (search.library == nullptr ? name[0] == '/' : strcmp(name, search.library) == 0)
      Library(info).Redirect(search);
  });
  return search.changed;
}

}  // namespace reprise::replay
