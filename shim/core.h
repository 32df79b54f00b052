/* The core, seen from the hooks: opened on the first allocation that matters, and asked from then on.
 *
 * Everything here may be called by any thread at any time, also before constructors have run, while the
 * loader is at work, and from a signal handler that interrupted one of these functions.
 */
#ifndef REPRISE_SHIM_CORE_H
#define REPRISE_SHIM_CORE_H

#include <stddef.h>
#include <stdint.h>

/* The range of addresses we serve from. The size is 0 until there is one; it is written last. */
extern uintptr_t reprise_arena_begin;
extern size_t reprise_arena_size;

static inline int reprise_is_ours(const void* block) {
  const size_t size = __atomic_load_n(&reprise_arena_size, __ATOMIC_ACQUIRE);
  return (uintptr_t)block - __atomic_load_n(&reprise_arena_begin, __ATOMIC_RELAXED) < size;
}

/* From how many bytes on the core is asked. 0 until the environment has been read; SIZE_MAX: never. */
extern size_t reprise_threshold;

static inline int reprise_wants(size_t bytes) {
  return bytes >= __atomic_load_n(&reprise_threshold, __ATOMIC_RELAXED);
}

/* A block of `bytes` at a multiple of `alignment` (a power of two) for who called the hook from `caller`, or NULL:
 * the real allocator is next. */
void* reprise_allocate(size_t bytes, size_t alignment, const void* caller);

/* The real allocator has taken a request of `bytes` that the core would have counted, had it been asked. */
void reprise_count_passed(size_t bytes);

/* For addresses that are ours. */
void reprise_release(void* block);
size_t reprise_usable_size(void* block); /* 0: not a live block, or the thread is inside the core already */

int reprise_trim(void); /* whether free memory of ours went back to the system */

#endif
