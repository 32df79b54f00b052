/* The hooks of libreprise-host.so. host_hooks.def is the list; README.md walks one allocation through. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/core.h"
#include "shim/probe.h"
#include "shim/real.h"

#define EXPORTED __attribute__((visibility("default")))
#define RARE __attribute__((noinline, cold))
#define likely(condition) __builtin_expect(!!(condition), 1)

/* What the real functions refuse or round is left to them, with all their rules and error codes. */
static inline int is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

static void* serve(size_t alignment, size_t bytes, const void* caller) {
  return is_power_of_two(alignment) ? reprise_allocate(bytes, alignment, caller) : NULL;
}
#define SERVE(alignment, bytes) serve(alignment, bytes, __builtin_return_address(0))

/* Small requests leave first: they pay for nothing that the others need. */
EXPORTED int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (!reprise_wants(bytes)) return REAL(posix_memalign)(out, alignment, bytes);
  void* const block = alignment % sizeof(void*) == 0 ? SERVE(alignment, bytes) : NULL;
  if (!block) return REAL(posix_memalign)(out, alignment, bytes);
  *out = block;
  return 0;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  void* const block = reprise_wants(bytes) ? SERVE(alignment, bytes) : NULL;
  return block ? block : REAL(aligned_alloc)(alignment, bytes);
}

EXPORTED void* memalign(size_t alignment, size_t bytes) {
  void* const block = reprise_wants(bytes) ? SERVE(alignment, bytes) : NULL;
  return block ? block : REAL(memalign)(alignment, bytes);
}

RARE static void probe_reached(void) { ++reprise_probe_hits; }

EXPORTED void free(void* block) {
  if (likely(!reprise_is_ours(block))) {
    REAL(free)(block);
  } else if (block) {
    reprise_release(block);
  } else {
    probe_reached();
  }
}

#define HOOK(type, name, params, args)
#define ALSO_FREES(name, params) \
  EXPORTED void name params;     \
  EXPORTED void name params { free(block); }
#include "shim/host_hooks.def"
#undef HOOK

/* The whole pages among these bytes of a block to the system. What it does not allow (locked pages) stays. */
static void give_back(char* begin, size_t bytes) {
  const int saved = errno;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const first = begin + (-(uintptr_t)begin & (page - 1));
  char* const end = begin + bytes;
  char* const last = end - ((uintptr_t)end & (page - 1));
  if (first < last) madvise(first, (size_t)(last - first), MADV_DONTNEED);
  errno = saved;
}

/* Gives back what has been copied as it goes: a large block is never there twice, as it would not be where
 * the C library moves pages. The steps end where large pages do. */
static void move_out(char* to, char* from, size_t bytes) {
  static const size_t step = 32 << 20;
  while (bytes > step) {
    const size_t part = step - (uintptr_t)from % step;
    memcpy(to, from, part);
    give_back(from, part);
    to += part;
    from += part;
    bytes -= part;
  }
  memcpy(to, from, bytes);
}

/* Into an ordinary block, which holds `bytes`, of which `kept` are there already. */
static void* move_to(void* to, void* block, size_t kept, size_t bytes) {
  if (reprise_wants(bytes)) reprise_count_passed(bytes);
  move_out(to, block, kept);
  reprise_release(block);
  return to;
}

/* For less than half of a block, or NULL. Where the C library shrinks a block it stays where it is, and so it keeps
 * its alignment; here, up to a page of it. */
static void* smaller_block(const void* block, size_t bytes) {
  const int saved = errno;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t alignment = (uintptr_t)block & -(uintptr_t)block;
  void* const smaller = REAL(memalign)(alignment < page ? alignment : page, bytes);
  errno = saved;
  return smaller;
}

/* In place where the block is large enough and most of it is kept, else into an ordinary block. */
RARE static void* realloc_ours(void* block, size_t bytes) {
  if (bytes == 0) {
    reprise_release(block);
    return NULL;
  }
  static const size_t worth_giving_back = 1 << 20;
  const size_t usable = reprise_usable_size(block);
  if (usable == 0) { /* not a live block, or a signal handler in the middle of one of our calls */
    errno = ENOMEM;
    return NULL;
  }
  if (bytes > usable) {
    void* const larger = REAL(realloc)(NULL, bytes);
    return larger ? move_to(larger, block, usable, bytes) : NULL;
  }
  if (usable - bytes >= worth_giving_back) give_back((char*)block + bytes, usable - bytes);
  void* const smaller = bytes < usable / 2 ? smaller_block(block, bytes) : NULL;
  return smaller ? move_to(smaller, block, bytes, bytes) : block;
}

EXPORTED void* realloc(void* block, size_t bytes) {
  if (likely(!reprise_is_ours(block))) return REAL(realloc)(block, bytes);
  if (block) return realloc_ours(block, bytes);
  probe_reached();
  return REAL(realloc)(NULL, bytes);
}

/* The C library's calls realloc by its name; that of another allocator behind us (mimalloc) does not. */
EXPORTED void* reallocarray(void* block, size_t count, size_t bytes) {
  if (likely(!reprise_is_ours(block))) return REAL(reallocarray)(block, count, bytes);
  size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(block, all);
  errno = ENOMEM;
  return NULL;
}

EXPORTED size_t malloc_usable_size(void* block) {
  if (likely(!reprise_is_ours(block))) return REAL(malloc_usable_size)(block);
  if (block) return reprise_usable_size(block);
  probe_reached();
  return 0;
}

EXPORTED int malloc_trim(size_t pad) {
  const int given = reprise_trim();
  return REAL(malloc_trim)(pad) || given;
}
