/* A core without an engine, so that the thin library is tested alone: a bump arena at a fixed address, where
 * a test program can tell a served block from a real one by its address.
 *
 * It prints one line when it is opened and what it counted at exit. FAKE_CORE, a word, makes it misbehave:
 *   refuse      will not serve
 *   newer       answers with a version that the thin library does not know
 *   smaller     answers with fewer functions than the thin library will call
 *   allocates   takes aligned memory itself while it is being opened, as the loader may
 *   fork        lets a thread fork while it is being opened, and says at exit whether that had to wait
 *   waits_fork  waits, while it is being opened, for a thread that forks
 *   thread      waits, while it is being opened, for a thread that takes aligned memory
 *   signal      raises SIGUSR1 inside every call
 */
#define _GNU_SOURCE
#include "tests/shim/fake_core.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "replay/abi.h"

static struct { size_t allocated, released, later; } counts;
static const struct reprise_host_shim* shim;
static uintptr_t next = FAKE_ARENA_BEGIN;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int told(const char* word) {
  const char* const set = getenv("FAKE_CORE");
  return set && strcmp(set, word) == 0;
}

static size_t* header(void* block) { return (size_t*)((uintptr_t)block - sizeof(size_t)); }

static pthread_t forking_thread;
static int is_child, forking, opened, forked, forked_while_opening, forks_told;

static void* allocate(size_t bytes, size_t alignment) {
  if (is_child) return NULL;
  pthread_mutex_lock(&mutex);
  if (told("fork") && forking_thread) {
    pthread_join(forking_thread, NULL);
    forking_thread = 0;
  }
  if (told("signal")) raise(SIGUSR1);
  const uintptr_t begin = (next + sizeof(size_t) + alignment - 1) / alignment * alignment;
  void* block = NULL;
  if (bytes <= FAKE_ARENA_END - begin) {
    next = begin + bytes;
    block = (void*)begin;
    *header(block) = bytes;
    ++counts.allocated;
  }
  pthread_mutex_unlock(&mutex);
  return block;
}

static void release(void* block) {
  pthread_mutex_lock(&mutex);
  if (told("signal")) raise(SIGUSR1);
  memset(block, 0xDD, *header(block));
  ++counts.released;
  pthread_mutex_unlock(&mutex);
}

static void release_later(void* block) { __atomic_fetch_add(&counts.later, 1, __ATOMIC_RELAXED); }

static size_t usable_size(void* block) { return *header(block); }
static int trim(void) { return 0; }

static void* take_aligned_memory(void* unused) {
  void* block = NULL;
  if (posix_memalign(&block, 4096, 65536) != 0 || FAKE_SERVED(block)) abort();
  free(block);
  return NULL;
}

static void before_fork(void) { ++*shim->thread_depth(); }
static void after_fork_in_parent(void) {
  --*shim->thread_depth();
  ++forks_told;
}
static void after_fork_in_child(void) {
  --*shim->thread_depth();
  is_child = 1;
}

static void* fork_here(void* unused) {
  __atomic_store_n(&forking, 1, __ATOMIC_RELEASE);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  forked_while_opening = !__atomic_load_n(&opened, __ATOMIC_ACQUIRE);
  __atomic_store_n(&forked, 1, __ATOMIC_RELEASE);
  waitpid(child, NULL, 0);
  return NULL;
}

/* Long enough for a fork that nothing holds back to show. */
static void let_a_thread_fork(void) {
  static const struct timespec a_moment = {.tv_nsec = 1000000};
  pthread_create(&forking_thread, NULL, fork_here, NULL);
  while (!__atomic_load_n(&forking, __ATOMIC_ACQUIRE)) nanosleep(&a_moment, NULL);
  for (int i = 0; i < 50 && !__atomic_load_n(&forked, __ATOMIC_ACQUIRE); ++i) nanosleep(&a_moment, NULL);
  __atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
}

const struct reprise_host_core* reprise_core_open_host(const struct reprise_host_shim* caller) {
  static struct reprise_host_core core = {REPRISE_ABI_VERSION,
                                          sizeof core,
                                          FAKE_ARENA_BEGIN,
                                          FAKE_ARENA_END,
                                          allocate,
                                          release,
                                          release_later,
                                          usable_size,
                                          trim,
                                          before_fork,
                                          after_fork_in_parent,
                                          after_fork_in_child};
  if (caller->version != REPRISE_ABI_VERSION || caller->size < sizeof *caller) return NULL;
  shim = caller;
  if (told("refuse")) return NULL;
  if (told("newer")) core.version = REPRISE_ABI_VERSION + 1;
  if (told("smaller")) core.size = sizeof core - 1;
  if (told("allocates")) take_aligned_memory(NULL);
  if (told("thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, take_aligned_memory, NULL);
    pthread_join(thread, NULL);
  }
  if (told("fork")) let_a_thread_fork();
  if (told("waits_fork")) {
    pthread_create(&forking_thread, NULL, fork_here, NULL);
    pthread_join(forking_thread, NULL);
  }
  void* const arena = mmap((void*)FAKE_ARENA_BEGIN, FAKE_ARENA_END - FAKE_ARENA_BEGIN, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (arena != (void*)FAKE_ARENA_BEGIN) return NULL;
  fprintf(stderr, "fake core: opened, threshold %zu\n", (size_t)caller->threshold);
  return &core;
}

#ifdef OVER_PLUGIN
/* Depends on the plugin, so that the plugin's destructor runs after this library's. */
extern void* plugin_block;
void** reprise_test_plugin_block(void) { return &plugin_block; }
#endif

__attribute__((destructor)) static void say(void) {
  if (!shim || told("refuse")) return;
  if (told("fork")) {
    fprintf(stderr, "fake core: forked while opening %d, told of %d\n", forked_while_opening, forks_told);
  }
  fprintf(stderr, "fake core: allocated %zu, released %zu, later %zu, passed %zu\n", counts.allocated,
          counts.released, counts.later, (size_t)shim->passed->requests);
  if (shim->passed->while_opening > 0)
    fprintf(stderr, "fake core: passed %zu while opening\n", (size_t)shim->passed->while_opening);
}
