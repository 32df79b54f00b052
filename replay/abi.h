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

#define REPRISE_ABI_VERSION 9u

/* The file that descriptor 2 was when the library was loaded. It is the only one that lines of ours may go to: a
 * job may close it, or be started without, and get the number for a file of its own. */
struct reprise_stderr {
  int open;
  uint64_t device;
  uint64_t inode;
};

/* The CPUs that the main thread could use when the library was loaded, as sched_getaffinity has them: by its place in
 * the job a thread may later be bound to one of them. */
struct reprise_cpus {
  size_t bytes; /* 0: not known */
  unsigned char mask[1024];
};

/* Requests of at least the threshold that were passed and that the core has not heard of: of other threads while
 * it was being opened, of the allocator behind the shim itself, and of realloc for more than a served block has.
 * Each is read atomically. */
struct reprise_passed {
  int64_t requests;
  int64_t bytes;         /* in all of them */
  int64_t while_opening; /* of these requests, those of other threads */
};

/* What the shim tells the core. Lives for ever. */
struct reprise_host_shim {
  uint32_t version;   /* REPRISE_ABI_VERSION */
  uint32_t size;      /* sizeof(struct reprise_host_shim) */
  uint64_t threshold; /* the shim asks for blocks of at least this many bytes, > 0 */
  /* The calling thread's depth: while it is not 0 the shim keeps the thread out of the core, so that an
   * allocation is passed to the real allocator and a free of a served block goes to release_later. The shim
   * raises it around every call into the core. The core raises it for good on threads of its own. */
  int* (*thread_depth)(void);
  const struct reprise_passed* passed;
  struct reprise_stderr stderr_at_start;
  const struct reprise_cpus* cpus_at_start; /* may be null */
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
  /* The usable bytes of a live block of ours, 0 for any other pointer. Also between before_fork and after it,
   * on the thread that forks. */
  size_t (*usable_size)(void* block);
  /* Returns memory that is free, and that no plan is about to use, to the system; whether there was any. errno is
   * left as it was. */
  int (*trim)(void);
  /* Around every fork of the process, on the thread that forks: the first before it, then one of the others.
   * They raise and lower that thread's depth, which is not 0 where a signal handler that interrupted the core
   * forks. */
  void (*before_fork)(void);
  void (*after_fork_in_parent)(void);
  void (*after_fork_in_child)(void);
};

/* Exported by libreprise_core.so under this name. Called at most once a process by the shim, from the first
 * allocation that matters. Returns NULL when the core will not serve (no address space, an unknown version);
 * the reason has then been said on stderr where the user asked to hear it. The returned struct lives for
 * ever. */
typedef const struct reprise_host_core* (*reprise_core_open_host_fn)(const struct reprise_host_shim* shim);
#define REPRISE_CORE_OPEN_HOST "reprise_core_open_host"

/* ---- CUDA: the driver's calls, as libreprise.so catches them (cuda_calls.def) ----
 *
 * The types are the driver's, under names of our own, so that nothing here needs its headers. A test holds
 * them against those where they are installed. */
typedef uint64_t cu_address;           /* CUdeviceptr */
typedef struct CUstream_st* cu_stream; /* 0 and 1: the legacy default stream, 2: the thread's own */
typedef struct CUctx_st* cu_context;
typedef struct CUmemPoolHandle_st* cu_pool;
struct cu_location {
  int type; /* 1: a device */
  int id;
};
struct cu_access {
  struct cu_location location;
  int flags; /* 0: none, 1: read, 3: read and write */
};
struct cu_pool_props {
  int allocation_type; /* 1: pinned, the only one for device memory */
  int handle_types;    /* 0: blocks are not exported */
  struct cu_location location;
  void* security;
  size_t max_bytes; /* 0: the system's own limit */
  uint16_t usage;
  unsigned char reserved[54];
};

/* One function pointer a call, each returning a CUresult. */
struct reprise_cuda_calls {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) int(*symbol) parameters;
#include "replay/cuda_calls.def"
};

struct reprise_cuda_shim {
  uint32_t version; /* REPRISE_ABI_VERSION */
  uint32_t size;    /* sizeof(struct reprise_cuda_shim) */
  /* The driver's own. None is null: what this driver does not have answers CUDA_ERROR_NOT_FOUND. */
  const struct reprise_cuda_calls* driver;
  /* Any other function of the driver, by the name it exports; NULL where it has none. */
  void* (*find)(const char* symbol);
  struct reprise_stderr stderr_at_start;
  const struct reprise_cpus* cpus_at_start; /* may be null */
};

/* What the core offers in their place. Every call is answered in full, by the driver where it is not ours. */
struct reprise_cuda_core {
  uint32_t version;
  uint32_t size;
  struct reprise_cuda_calls calls;
  void (*stop)(void); /* serves nothing new from then on; any thread */
};

/* Like reprise_core_open_host, called from the first hooked call of the driver. */
typedef const struct reprise_cuda_core* (*reprise_core_open_cuda_fn)(const struct reprise_cuda_shim* shim);
#define REPRISE_CORE_OPEN_CUDA "reprise_core_open_cuda"

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-*) */

#endif
