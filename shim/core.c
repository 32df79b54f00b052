#define _GNU_SOURCE
#include "shim/core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/abi.h"
#include "shim/core_library.h"
#include "shim/environment.h"
#include "shim/old_glibc.h"
#include "shim/probe.h"
#include "shim/real.h"

uintptr_t reprise_arena_begin;
size_t reprise_arena_size;
size_t reprise_threshold;

static const struct reprise_host_core* open_core;

/* Requests that the core does not hear of, for its summary. */
static struct reprise_passed passed;

/* A preloaded library's thread-local variables are laid out before the program starts: no access to this one
 * can allocate or fail. */
static __thread int depth __attribute__((tls_model("initial-exec")));
static int* thread_depth(void) { return &depth; }

/* A signal handler may come between any two instructions; the fences keep `depth` raised around the call. */
#define INSIDE(call)                         \
  do {                                       \
    ++depth;                                 \
    __atomic_signal_fence(__ATOMIC_SEQ_CST); \
    call;                                    \
    __atomic_signal_fence(__ATOMIC_SEQ_CST); \
    --depth;                                 \
  } while (0)

/* One exported name more than the hooks: in a process with two copies of this library, all but the first find
 * here that they are not the first. */
__attribute__((visibility("default"))) void reprise_host_marker(void) {}
extern void own_marker(void) __attribute__((alias("reprise_host_marker"), visibility("hidden")));

static void never_serve(void) { __atomic_store_n(&reprise_threshold, SIZE_MAX, __ATOMIC_RELAXED); }

static int is_limited(int resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* What the core and its libraries take, and the range that it reserves, count against the job's own limit, addresses
 * against the one and the arena's tables against the other: it could fail where it would have run. */
static int leaves_to_its_limit(void) {
  const char* const what = is_limited(RLIMIT_AS)     ? "the address space is limited (ulimit -v)"
                           : is_limited(RLIMIT_DATA) ? "its data is limited (ulimit -d)"
                                                     : NULL;
  if (what && reprise_talkative()) reprise_say(what, NULL);
  return what != NULL;
}

static const struct reprise_host_core* load_core(void) {
  static struct reprise_host_shim shim;
  if (!dlsym) return NULL; /* an old glibc, and no core can be for it */
  if (dlsym(RTLD_DEFAULT, "reprise_host_marker") != (void*)own_marker) return NULL; /* another copy serves */
  if (leaves_to_its_limit()) return NULL;
  /* Before any lookup fails: to say what did, the C library takes a lock that such a malloc may be called under. */
  if (reprise_malloc_comes_to_us(reprise_threshold)) {
    reprise_say("this program's malloc takes aligned memory, and is called with locks of the C library held",
                NULL);
    return NULL;
  }
  if (dlsym(RTLD_DEFAULT, "__lsan_do_leak_check") || dlsym(RTLD_DEFAULT, "__tsan_init")) {
    reprise_say("a sanitizer watches this program's memory and threads, and knows nothing of ours", NULL);
    return NULL;
  }
  if (!reprise_blocks_come_back()) {
    reprise_say("this program frees memory by functions of its own", NULL);
    return NULL;
  }
  reprise_find_allocator();
  const reprise_core_open_host_fn open_host =
      (reprise_core_open_host_fn)reprise_core_function(REPRISE_CORE_OPEN_HOST, dlsym);
  if (!open_host) return NULL;
  shim.version = REPRISE_ABI_VERSION;
  shim.size = sizeof shim;
  shim.threshold = reprise_threshold;
  shim.thread_depth = thread_depth;
  shim.passed = &passed;
  shim.stderr_at_start = reprise_stderr_at_start();
  shim.cpus_at_start = reprise_cpus_at_start();
  const struct reprise_host_core* const core = open_host(&shim);
  if (!core) return NULL; /* it has said why */
  if (core->version != REPRISE_ABI_VERSION || core->size < sizeof *core) {
    reprise_say("the core library is of another version", NULL);
    return NULL;
  }
  return core;
}

/* 1 while a thread opens the core. */
static int opening;

/* The forks of this thread that the core was told of, and is to be told the end of: a signal handler may fork
 * while another fork is under way. */
static __thread int forks_told __attribute__((tls_model("initial-exec")));

/* This thread forks beside others, and no core is open. */
static __thread int leaves_threads __attribute__((tls_model("initial-exec")));

/* The system's own call, as in core_library.c. A folder's links are its own two, and one for each thread. */
static int is_only_thread(void) {
  struct stat threads;
  const int saved = errno;
  const int only =
      syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &threads, 0) == 0 && threads.st_nlink == 3;
  errno = saved;
  return only;
}

/* A fork waits until the core is open: the child would inherit locks of the C library that the opening thread
 * holds (that of exit's list, above all) and hang on them. Not for ever, for another fork handler of the job
 * may hold what the opening needs. The core cannot have handlers of its own: the C library would not call
 * those for a fork that has begun. */
static void before_fork(void) {
  static const struct timespec a_while = {.tv_nsec = 10000000};
  for (int i = 0; i < 100 && !depth && __atomic_load_n(&opening, __ATOMIC_ACQUIRE); ++i) {
    syscall(SYS_futex, &opening, FUTEX_WAIT_PRIVATE, 1, &a_while);
  }
  const struct reprise_host_core* const core = __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
  leaves_threads = !core && !is_only_thread();
  if (!core) return;
  core->before_fork();
  ++forks_told;
}

static void after_fork_in_parent(void) {
  if (!forks_told) return;
  --forks_told;
  open_core->after_fork_in_parent();
}

/* A thread that is not here any more may have held the loader's locks, and to open a core takes them. */
static void after_fork_in_child(void) {
  if (leaves_threads) never_serve();
  if (!forks_told) return;
  --forks_told;
  open_core->after_fork_in_child();
}

/* Registered for no library, the handlers stay until the process is gone. pthread_atfork registers them for
 * ours, and exit would take them away while other threads still fork. Another C library than glibc does not have it,
 * and could not open a core. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                             void* library);
#pragma weak __register_atfork

static int handles_forks;

/* Before any thread is started; the constructors of other libraries may come first, and allocate. */
__attribute__((constructor)) static void handle_forks(void) {
  if (handles_forks) return;
  handles_forks = __register_atfork &&
                  __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, NULL) == 0;
}

static void set_opening(int now) {
  __atomic_store_n(&opening, now, __ATOMIC_RELEASE);
  if (!now) syscall(SYS_futex, &opening, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* Opens the core, once a process. Whoever arrives meanwhile passes through: other threads (to wait for this
 * one could deadlock with the loader's lock), and this thread's own calls (the loader allocates, and runs
 * constructors). */
__attribute__((noinline, cold)) static void try_to_open(void) {
  static int begun;
  if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) return;
  const int saved = errno;
  int cancel;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* files are opened: a cancellation point is new */
  set_opening(1);
  handle_forks();
  /* Without the handlers a fork would leave a child with a lock that nobody releases. */
  const struct reprise_host_core* const core = handles_forks ? load_core() : NULL;
  if (dlerror) dlerror(); /* what the loader has said to us is not for the job */
  if (core) {
    __atomic_store_n(&reprise_arena_begin, core->arena_begin, __ATOMIC_RELAXED);
    __atomic_store_n(&reprise_arena_size, core->arena_end - core->arena_begin, __ATOMIC_RELEASE);
    __atomic_store_n(&open_core, core, __ATOMIC_RELEASE);
  } else {
    never_serve();
  }
  set_opening(0);
  pthread_setcancelstate(cancel, NULL);
  errno = saved;
}

void reprise_count_passed(size_t bytes) {
  __atomic_fetch_add(&passed.requests, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&passed.bytes, (int64_t)bytes, __ATOMIC_RELAXED);
}

/* The open core for a request of `bytes`, or NULL. */
__attribute__((noinline, cold)) static const struct reprise_host_core* first_core(size_t bytes) {
  if (reprise_threshold == 0) {
    __atomic_store_n(&reprise_threshold, reprise_threshold_from_environment(), __ATOMIC_RELAXED);
  }
  if (!reprise_wants(bytes)) return NULL;
  INSIDE(try_to_open());
  const struct reprise_host_core* const core = __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
  if (!core) {
    __atomic_fetch_add(&passed.while_opening, 1, __ATOMIC_RELAXED);
    reprise_count_passed(bytes);
  }
  return core;
}

void* reprise_allocate(size_t bytes, size_t alignment, const void* caller) {
  if (depth) {
    ++reprise_probe_hits;
    return NULL;
  }
  const struct reprise_host_core* core = __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
  if (!core && !(core = first_core(bytes))) return NULL;
  if (reprise_is_allocators(caller)) {
    reprise_count_passed(bytes);
    return NULL;
  }
  void* block;
  INSIDE(block = core->allocate(bytes, alignment));
  return block;
}

/* An address that is ours was handed out by the core, so it is open. */
void reprise_release(void* block) {
  if (depth) {
    open_core->release_later(block);
  } else {
    INSIDE(open_core->release(block));
  }
}

size_t reprise_usable_size(void* block) {
  /* The job's own fork handlers are answered, one deep; deeper, the fork has interrupted the core. */
  if (depth > 1 || (depth && !forks_told)) return 0;
  size_t bytes;
  INSIDE(bytes = open_core->usable_size(block));
  return bytes;
}

int reprise_trim(void) {
  const struct reprise_host_core* const core = __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
  if (!core || depth) return 0;
  int given;
  INSIDE(given = core->trim());
  return given;
}
