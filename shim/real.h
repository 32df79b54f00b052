/* The allocator behind us: the next definition of each hooked function in the loader's order, so that a
 * jemalloc that is preloaded or linked after us is respected.
 *
 * Every entry is callable from the first instruction of the process: it begins as a function that looks all
 * of them up and then calls the real one. (Constructors of other libraries may run before ours.)
 */
#ifndef REPRISE_SHIM_REAL_H
#define REPRISE_SHIM_REAL_H

#include <stddef.h>
#include <stdint.h>

struct reprise_real_functions {
#define HOOK(type, name, params, args) type(*name) params;
#include "shim/host_hooks.def"
#undef HOOK
};
extern struct reprise_real_functions reprise_real;

#define REAL(name) __atomic_load_n(&reprise_real.name, __ATOMIC_RELAXED)

/* Where the library of the allocator behind us lies; of no size until it has been looked for, which is before
 * anything is served. What it asks for itself is left to it: jemalloc's operator new calls aligned_alloc by its
 * global name, and its operator delete takes whatever it gets for its own. */
extern uintptr_t reprise_allocator_begin;
extern size_t reprise_allocator_size;
void reprise_find_allocator(void);

static inline int reprise_is_allocators(const void* code) {
  return (uintptr_t)code - reprise_allocator_begin < reprise_allocator_size;
}

#endif
