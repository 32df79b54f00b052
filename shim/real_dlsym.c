#define _GNU_SOURCE
#include "shim/real_dlsym.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/same_name.h"

reprise_dlsym_fn reprise_real_dlsym;

/* The tables of a loaded library that the loader itself looks names up in. */
struct names {
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* hash; /* DT_GNU_HASH */
};

/* The loader writes addresses over the file's offsets; not in every library (the vDSO). */
static const void* at(ElfW(Addr) base, ElfW(Addr) value) {
  return (const void*)(value < base ? base + value : value); /* NOLINT(performance-no-int-to-ptr) */
}

static struct names names_of(ElfW(Addr) base, const ElfW(Dyn) * entry) {
  struct names names = {0};
  for (; entry && entry->d_tag != DT_NULL; ++entry) {
    const void* const table = at(base, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) names.symbols = table;
    if (entry->d_tag == DT_STRTAB) names.strings = table;
    if (entry->d_tag == DT_GNU_HASH) names.hash = table;
  }
  return names;
}

static uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name; ++name) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

/* The table is: bucket count, first symbol, filter words, shift; the filter; the buckets; one word a symbol,
 * whose lowest bit marks the last of its bucket. */
static void* defined_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name) {
  const struct names names = names_of(base, dynamic);
  if (!names.symbols || !names.strings || !names.hash || names.hash[0] == 0) return NULL;
  const uint32_t bucket_count = names.hash[0], first = names.hash[1], filter_words = names.hash[2];
  const uint32_t* const buckets = names.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const words = buckets + bucket_count;
  const uint32_t hash = gnu_hash(name);
  uint32_t i = buckets[hash % bucket_count];
  if (i < first) return NULL;
  for (;; ++i) {
    const ElfW(Sym)* const symbol = names.symbols + i;
    const uint32_t word = words[i - first];
    if ((word | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
        reprise_is_same_name(names.strings + symbol->st_name, name)) {
      return (void*)(base + symbol->st_value); /* NOLINT(performance-no-int-to-ptr) */
    }
    if (word & 1) return NULL;
  }
}

/* Only glibc's loader shows its list. */
#pragma weak _r_debug

struct walk {
  int is_behind_us;
  void* found;
};

static int walk_on(struct dl_phdr_info* library, size_t size, void* to) {
  struct walk* const walk = to;
  const ElfW(Dyn)* dynamic = NULL;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &library->dlpi_phdr[i];
    if (part->p_type != PT_DYNAMIC) continue;
    dynamic = (const void*)(library->dlpi_addr + part->p_vaddr); /* NOLINT(performance-no-int-to-ptr) */
  }
  if (walk->is_behind_us) walk->found = defined_in(library->dlpi_addr, dynamic, "dlsym");
  if (dynamic == _DYNAMIC) walk->is_behind_us = 1;
  return walk->found != NULL;
}

/* The loader's own list, in the order in which names are looked up. dl_iterate_phdr takes a lock, and a sanitizer that
 * defines it calls dlsym before it can be called. */
reprise_dlsym_fn reprise_find_dlsym(void) {
  reprise_dlsym_fn found = __atomic_load_n(&reprise_real_dlsym, __ATOMIC_ACQUIRE);
  if (found) return found;
  if (&_r_debug) {
    const struct link_map* library = _r_debug.r_map;
    while (library && library->l_ld != _DYNAMIC) library = library->l_next;
    while (library && !found && (library = library->l_next))
      found = (reprise_dlsym_fn)defined_in(library->l_addr, library->l_ld, "dlsym");
  } else {
    struct walk walk = {0};
    dl_iterate_phdr(walk_on, &walk);
    found = (reprise_dlsym_fn)walk.found;
  }
  __atomic_store_n(&reprise_real_dlsym, found, __ATOMIC_RELEASE);
  return found;
}

/* Before there are threads, which change that list. */
__attribute__((constructor)) static void find_early(void) { reprise_find_dlsym(); }

void* reprise_dlsym(void* handle, const char* name) {
  const reprise_dlsym_fn found = reprise_find_dlsym();
  return found ? found(handle, name) : NULL;
}
