/* The seam between the thin preload libraries (shim/) and the core (libreprise_core.so).
 *
 * Plain C, one struct each way. The shim tells the core what it will ask for; the core hands back its entry
 * points. Both structs begin with a version and their own size, and either side refuses what it does not
 * know, which ends in pass-through.
 *
 * No function here may throw, exit or abort. Any of them may be called from any thread, at any time after
 * reprise_core_open_host has returned non-null, until the process is gone (the core is never unloaded).
 */
#ifndef REPRISE_REPLAY_ABI_H
#define REPRISE_REPLAY_ABI_H

/* C, whatever C++ has of its own for it. NOLINTBEGIN(modernize-*) */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_ABI_VERSION 1u

/* What the shim tells the core. Lives for ever. */
struct reprise_host_shim {
  uint32_t version;   /* REPRISE_ABI_VERSION */
  uint32_t size;      /* sizeof(struct reprise_host_shim) */
  uint64_t threshold; /* the shim asks for blocks of at least this many bytes, > 0 */
  /* The calling thread's depth: while it is not 0 the shim keeps the thread out of the core, so that an
   * allocation is passed to the real allocator and a free of a served block goes to release_later. The shim
   * raises it around every call into the core. The core raises it for good on threads of its own. */
  int* (*thread_depth)(void);
};

/* What the core offers for host memory. Every block it serves lies in [arena_begin, arena_end): the shim
 * tells ours from theirs by that range alone, so a free of somebody else's block never enters the core. */
struct reprise_host_core {
  uint32_t version;
  uint32_t size;
  uintptr_t arena_begin;
  uintptr_t arena_end;
  /* A block of `bytes` (> 0) at a multiple of `alignment` (a power of two), or NULL: then the shim calls the
   * real allocator. errno is left as it was. */
  void* (*allocate)(size_t bytes, size_t alignment);
  /* Gives back a block that allocate returned. A pointer inside the arena that is not the begin of a live
   * block is counted and ignored. errno is left as it was. */
  void (*release)(void* block);
  /* The same without taking a lock, for a thread that is already inside the core. */
  void (*release_later)(void* block);
  /* The usable bytes of a live block of ours, 0 for any other pointer. */
  size_t (*usable_size)(void* block);
};

/* Exported by libreprise_core.so under this name. Called at most once a process by the shim, from the first
 * allocation that matters. Returns NULL when the core will not serve (no address space, an unknown version);
 * the reason has then been said on stderr where the user asked to hear it. The returned struct lives for
 * ever. */
typedef const struct reprise_host_core* (*reprise_core_open_host_fn)(const struct reprise_host_shim* shim);
#define REPRISE_CORE_OPEN_HOST "reprise_core_open_host"

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-*) */

#endif
