#define _GNU_SOURCE
#include "shim/real.h"

#include <errno.h>
#include <link.h>

#include "shim/old_glibc.h"

/* The C library's own, under the names it keeps for those who replace malloc. They serve where the loader
 * cannot be asked. Weak, for another C library than glibc has none of them, and a loader that can be asked. */
extern void* __libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void* block);
extern void* __libc_realloc(void* block, size_t bytes);
#pragma weak __libc_memalign
#pragma weak __libc_free
#pragma weak __libc_realloc

static int libc_posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const block = __libc_memalign(alignment, bytes);
  if (!block) return ENOMEM;
  *out = block;
  return 0;
}
static void* libc_aligned_alloc(size_t alignment, size_t bytes) { return __libc_memalign(alignment, bytes); }
static void* libc_memalign(size_t alignment, size_t bytes) { return __libc_memalign(alignment, bytes); }
static void libc_free(void* block) { __libc_free(block); }
static void* libc_realloc(void* block, size_t bytes) { return __libc_realloc(block, bytes); }
static void* libc_reallocarray(void* block, size_t count, size_t bytes) {
  size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) return __libc_realloc(block, all);
  errno = ENOMEM;
  return NULL;
}
static size_t libc_malloc_usable_size(void* block) { return 0; }
static int libc_malloc_trim(size_t pad) { return 0; }

static void leak(void* block) {}

static int holds(const struct dl_phdr_info* library, const void* address) {
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &library->dlpi_phdr[i];
    if (part->p_type != PT_LOAD) continue;
    if ((uintptr_t)address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz) return 1;
  }
  return 0;
}

enum { usual_first = 1, old_first };

/* Libraries come in the order in which the loader looks for names. */
static int which_is_first(struct dl_phdr_info* library, size_t size, void* usual_and_old) {
  void* const* const functions = usual_and_old;
  if (holds(library, functions[0])) return usual_first;
  return holds(library, functions[1]) ? old_first : 0;
}

/* Whether libc_malloc_debug comes first behind us. It has these names at their old versions alone: the job's calls are
 * bound to those, and dlsym passes over them, so that a free behind it would get blocks of another malloc. What has no
 * versions (tcmalloc) the job's calls are bound to as well, and dlvsym passes over that. */
static int old_versions_come_first(void) {
  if (!dlsym || !dlvsym) return 0;
  void* functions[] = {dlsym(RTLD_NEXT, "free"), dlvsym(RTLD_NEXT, "free", REPRISE_OLDEST)};
  /* Asked last: a sanitizer, whose free is not the C library's, defines that function, and may not be ready for it. */
  return functions[0] == (void*)__libc_free && functions[0] != functions[1] &&
         dl_iterate_phdr(which_is_first, functions) == old_first;
}

static void* next(const char* name, int old_version) {
  void* found = old_version ? dlvsym(RTLD_NEXT, name, REPRISE_OLDEST) : NULL;
  if (!found && old_version) found = dlvsym(RTLD_NEXT, name, "GLIBC_2.16"); /* aligned_alloc's, on x86-64 */
  return found || !dlsym ? found : dlsym(RTLD_NEXT, name);
}

static int have_real_functions;

#define HOOK(type, name, params, args) static type first_##name params;
#include "shim/host_hooks.def"
#undef HOOK

/* Safe to run in several threads at once: all of them find the same. */
__attribute__((constructor)) static void find_real_functions(void) {
  if (__atomic_load_n(&have_real_functions, __ATOMIC_ACQUIRE)) return;
  const int saved = errno;
  /* dlsym frees the text of an earlier error, and would come back here without end. */
  void (*expected)(void*) = first_free;
  __atomic_compare_exchange_n(&reprise_real.free, &expected, leak, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  const int old_version = old_versions_come_first();
#define HOOK(type, name, params, args)                                                   \
  {                                                                                      \
    type(*found) params = (type(*) params)next(#name, old_version);                      \
    __atomic_store_n(&reprise_real.name, found ? found : libc_##name, __ATOMIC_RELAXED); \
  }
#include "shim/host_hooks.def"
#undef HOOK
  __atomic_store_n(&have_real_functions, 1, __ATOMIC_RELEASE);
  errno = saved;
}

#define HOOK(type, name, params, args) \
  static type first_##name params {    \
    find_real_functions();             \
    return REAL(name) args;            \
  }
#include "shim/host_hooks.def"
#undef HOOK

struct reprise_real_functions reprise_real = {
#define HOOK(type, name, params, args) .name = first_##name,
#include "shim/host_hooks.def"
#undef HOOK
};

uintptr_t reprise_allocator_begin;
size_t reprise_allocator_size;

static int note_allocator(struct dl_phdr_info* library, size_t size, void* function) {
  if (!holds(library, function)) return 0;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &library->dlpi_phdr[i];
    if (part->p_type != PT_LOAD) continue;
    const uintptr_t from = library->dlpi_addr + part->p_vaddr;
    if (from < begin) begin = from;
    if (from + part->p_memsz > end) end = from + part->p_memsz;
  }
  reprise_allocator_begin = begin;
  reprise_allocator_size = end - begin;
  return 1;
}

void reprise_find_allocator(void) { dl_iterate_phdr(note_allocator, (void*)REAL(aligned_alloc)); }
