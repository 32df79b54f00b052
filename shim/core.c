#define _GNU_SOURCE
#include "shim/core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "replay/abi.h"
#include "shim/environment.h"
#include "shim/old_glibc.h"
#include "shim/probe.h"

uintptr_t reprise_arena_begin;
size_t reprise_arena_size;
size_t reprise_threshold;

static const struct reprise_host_core* open_core;

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

/* To stderr. If nobody reads it any more, that must not end the job. */
static void write_quietly(const char* text, size_t length) {
  static const struct timespec now;
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  sigprocmask(SIG_BLOCK, &pipe, &before); /* of this thread, on Linux; pthread_sigmask is too new */
  if (write(STDERR_FILENO, text, length) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE)) {
    sigtimedwait(&pipe, NULL, &now);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static void say(const char* what, const char* detail) {
  if (reprise_quiet()) return;
  static char line[PATH_MAX + 512];
  const char* const parts[] = {"reprise: ", what, detail ? ": " : "", detail ? detail : "",
                               "; memory is left as it is\n"};
  size_t length = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    const size_t bytes = strlen(parts[i]);
    if (bytes > sizeof line - length) break;
    memcpy(line + length, parts[i], bytes);
    length += bytes;
  }
  write_quietly(line, length);
}

/* libreprise_core.so in the folder that we were loaded from. */
static const char* core_path(void) {
  static const char name[] = "libreprise_core.so";
  static char path[PATH_MAX];
  Dl_info self;
  if (!dladdr((void*)own_marker, &self) || !self.dli_fname) return NULL;
  const char* const slash = strrchr(self.dli_fname, '/');
  const size_t folder = slash ? (size_t)(slash - self.dli_fname) + 1 : 0;
  if (folder + sizeof name > sizeof path) return NULL;
  memcpy(path, self.dli_fname, folder);
  memcpy(path + folder, name, sizeof name);
  return path;
}

/* A file cut short (a copy that did not finish) would not fail to open: the loader would map it, read past
 * its end and end the process. */
static int is_whole(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  const off_t size = lseek(file, 0, SEEK_END);
  ElfW(Ehdr) header;
  /* What is no library at all is for the loader to say. */
  const int is_library =
      pread(file, &header, sizeof header, 0) == sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  int whole = 1;
  for (int i = 0; is_library && whole && i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    const off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof part);
    whole = pread(file, &part, sizeof part, at) == sizeof part && part.p_filesz <= (size_t)size &&
            part.p_offset <= (size_t)size - part.p_filesz;
  }
  close(file);
  return whole;
}

static const struct reprise_host_core* load_core(void) {
  static struct reprise_host_shim shim;
  if (!dlsym || !dlopen || !dlerror || !dladdr) return NULL; /* an old glibc, and no core can be for it */
  if (dlsym(RTLD_DEFAULT, "reprise_host_marker") != (void*)own_marker) return NULL; /* another copy serves */
  if (!reprise_blocks_come_back()) {
    say("this program frees memory by functions of its own", NULL);
    return NULL;
  }
  const char* const path = core_path();
  if (path && !is_whole(path)) {
    say("the core library is cut short", path);
    return NULL;
  }
  void* const library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    say("cannot open the core library", path ? dlerror() : "its folder is unknown");
    return NULL;
  }
  const reprise_core_open_host_fn open_host =
      (reprise_core_open_host_fn)dlsym(library, REPRISE_CORE_OPEN_HOST);
  if (!open_host) {
    say("cannot use the core library", dlerror());
    return NULL;
  }
  shim.version = REPRISE_ABI_VERSION;
  shim.size = sizeof shim;
  shim.threshold = reprise_threshold;
  shim.thread_depth = thread_depth;
  const struct reprise_host_core* const core = open_host(&shim);
  if (!core) return NULL; /* it has said why */
  if (core->version != REPRISE_ABI_VERSION || core->size < sizeof *core) {
    say("the core library is of another version", path);
    return NULL;
  }
  return core;
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
  const struct reprise_host_core* const core = load_core();
  if (core) {
    __atomic_store_n(&reprise_arena_begin, core->arena_begin, __ATOMIC_RELAXED);
    __atomic_store_n(&reprise_arena_size, core->arena_end - core->arena_begin, __ATOMIC_RELEASE);
    __atomic_store_n(&open_core, core, __ATOMIC_RELEASE);
  } else {
    never_serve();
  }
  pthread_setcancelstate(cancel, NULL);
  errno = saved;
}

/* The open core for a request of `bytes`, or NULL. */
__attribute__((noinline, cold)) static const struct reprise_host_core* first_core(size_t bytes) {
  if (reprise_threshold == 0) {
    __atomic_store_n(&reprise_threshold, reprise_threshold_from_environment(), __ATOMIC_RELAXED);
  }
  if (!reprise_wants(bytes)) return NULL;
  INSIDE(try_to_open());
  return __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
}

void* reprise_allocate(size_t bytes, size_t alignment) {
  if (depth) return NULL;
  const struct reprise_host_core* core = __atomic_load_n(&open_core, __ATOMIC_ACQUIRE);
  if (!core && !(core = first_core(bytes))) return NULL;
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
  if (depth) return 0;
  size_t bytes;
  INSIDE(bytes = open_core->usable_size(block));
  return bytes;
}

__thread int reprise_probe_hits __attribute__((tls_model("initial-exec")));

int reprise_blocks_come_back(void) {
  /* Through the loader's global names, and not to be guessed by the compiler. */
  void (*volatile call_free)(void*) = free;
  void* (*volatile call_realloc)(void*, size_t) = realloc;
  size_t (*volatile call_usable_size)(void*) = malloc_usable_size;
  reprise_probe_hits = 0;
  __atomic_store_n(&reprise_arena_size, 1, __ATOMIC_RELEASE); /* [0, 1): NULL is ours */
  call_free(NULL);
  call_usable_size(NULL);
  void* const block = call_realloc(NULL, 1);
  __atomic_store_n(&reprise_arena_size, 0, __ATOMIC_RELEASE);
  call_free(block);
  return reprise_probe_hits == 3;
}
