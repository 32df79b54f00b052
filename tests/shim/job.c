/* Jobs to be run under the thin library: `job NAME`. A job prints what it saw and returns 0, or says on
 * stderr which check failed and returns 1. */
#define _GNU_SOURCE
#include "tests/shim/job.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/fake_core.h"

/* What each function answers to good and bad requests; the same text is expected with and without Reprise. */
static void answers(void) {
  static const size_t alignments[] = {0, 1, 3, 4, 8, 12, 16, 24, 64, 100, 4096, 1 << 21};
  static const size_t sizes[] = {0, 1, 4095, 4096, 100000, SIZE_MAX / 2 + 1, SIZE_MAX - 64, SIZE_MAX};
  for (size_t a = 0; a < sizeof alignments / sizeof *alignments; ++a) {
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
      const size_t alignment = alignments[a];
      const size_t bytes = sizes[s];
      const uintptr_t mask = alignment && !(alignment & (alignment - 1)) ? alignment - 1 : 0;
      void* block = (void*)1;
      errno = 77;
      const int code = posix_memalign(&block, alignment, bytes);
      printf("posix_memalign %zu %zu: %d errno %d %s\n", alignment, bytes, code, errno,
             code ? (block == (void*)1 ? "untouched" : "touched") : ((uintptr_t)block & mask ? "bad" : "ok"));
      if (code == 0) free(block);
      errno = 77;
      block = memalign(alignment, bytes);
      printf("memalign %zu %zu: %d errno %d %s\n", alignment, bytes, block != NULL, errno,
             (uintptr_t)block & mask ? "bad" : "ok");
      errno = 77;
      free(block);
      CHECK(errno == 77);
      block = aligned_alloc(alignment, bytes);
      printf("aligned_alloc %zu %zu: %d errno %d %s\n", alignment, bytes, block != NULL, errno,
             (uintptr_t)block & mask ? "bad" : "ok");
      free(block);
    }
  }
}

/* Which sizes are served, by each function. */
static void served(void) {
  static const size_t sizes[] = {4095, 4096, 65535, 65536, 1 << 20};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    void* const a = take(64, sizes[s]);
    void* const b = aligned_alloc(64, sizes[s]);
    void* const c = memalign(1, sizes[s]);
    printf("%zu: %d %d %d\n", sizes[s], FAKE_SERVED(a), FAKE_SERVED(b), FAKE_SERVED(c));
    free(a);
    free(b);
    free(c);
  }
  CHECK(dlsym(RTLD_DEFAULT, "reprise_core_open_host") == NULL); /* the core's names meet nobody's */
}

static const size_t volatile too_much = SIZE_MAX / 2 + 1;
static void reallocate(void) {
  unsigned char* block = take(4096, kLarge);
  CHECK(FAKE_SERVED(block));
  CHECK(malloc_usable_size(block) >= kLarge);
  CHECK(realloc(block, kLarge / 2) == block);
  CHECK(realloc(block, kLarge) == block);
  block = realloc(block, 4 * kLarge);
  CHECK(!FAKE_SERVED(block));
  CHECK(all_are(block, kLarge, 0x5A));
  free(block);

  block = take(64, kLarge);
  errno = 0;
  CHECK(realloc(block, too_much) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(reallocarray(block, too_much, 2 + kLarge) == NULL &&
        errno == ENOMEM); /* more than a size_t can say */
  CHECK(all_are(block, kLarge, 0x5A));
  CHECK(realloc(block, 0) == NULL);

  block = take(64, kLarge);
  block = reallocarray(block, 4, kLarge);
  CHECK(block && !FAKE_SERVED(block) && all_are(block, kLarge, 0x5A));
  free(block);

  block = realloc(NULL, 100);
  CHECK(block && malloc_usable_size(block) >= 100 && malloc_usable_size(NULL) == 0);
  free(realloc(block, 10));
  free(NULL);
}

/* In MiB: what the process holds now, and the most that it has held. */
static long held(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}
static long held_at_most(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss / 1024;
}

/* A large block that grows is not there twice, and one that shrinks gives its memory back; the blocks beside
 * it, which share pages with it, stay as they are. */
static void reallocate_large(void) {
  enum { kMuch = (192 << 20) + 12345, kMost = (100 << 20) + 123, kLittle = (10 << 20) + 321 };
  unsigned char* const before = take(64, kLarge + 77);
  unsigned char* grown = take(64, kMuch);
  unsigned char* const between = take(64, kLarge + 77);
  unsigned char* shrunk = take(64, kMuch);
  unsigned char* const after = take(64, kLarge + 77);
  memset(grown + kMuch / 2, 0x33, kMuch / 4);
  long has = held_at_most();
  grown = realloc(grown, kMuch + kLarge);
  CHECK(held_at_most() < has + 96);
  CHECK(all_are(grown, kMuch / 2, 0x5A) && all_are(grown + kMuch / 2, kMuch / 4, 0x33));
  CHECK(all_are(grown + kMuch / 2 + kMuch / 4, kMuch / 4, 0x5A));
  has = held();
  errno = 77;
  CHECK(realloc(shrunk, kMost) == shrunk && errno == 77);
  CHECK(held() < has - 64);
  CHECK(all_are(shrunk, kMost, 0x5A));
  CHECK(realloc(shrunk, kMuch) == shrunk);
  memset(shrunk + kMost, 0x5A, kMuch - kMost);
  has = held();
  shrunk = realloc(shrunk, kLittle);
  CHECK(errno == 77 && (uintptr_t)shrunk % 64 == 0);
  CHECK(held() < has - 128);
  CHECK(all_are(shrunk, kLittle, 0x5A));
  CHECK(all_are(before, kLarge + 77, 0x5A) && all_are(between, kLarge + 77, 0x5A));
  CHECK(all_are(after, kLarge + 77, 0x5A));
  free(before);
  free(between);
  free(after);
  free(shrunk);
  free(grown);
}

/* Buffers that were taken for the worst case and shrink to what they hold: none keeps what it gave up. */
static void shrink_many(void) {
  enum { kCount = 300, kWorst = 1000000, kKept = 5000 };
  static unsigned char* block[kCount];
  const long has = held();
  for (int i = 0; i < kCount; ++i) block[i] = realloc(take(4096, kWorst), kKept);
  CHECK(held() < has + 64);
  for (int i = 0; i < kCount; ++i) {
    CHECK((uintptr_t)block[i] % 4096 == 0 && all_are(block[i], kKept, 0x5A));
    free(block[i]);
  }
}

/* What is free goes back when the job asks for it, and what is live stays as it is. */
static void trims(void) {
  enum { kCount = 300, kMuch = 1 << 20 };
  static unsigned char* block[kCount];
  const long has = held();
  for (int i = 0; i < kCount; ++i) block[i] = take(64, kMuch);
  for (int i = 1; i < kCount; ++i) free(block[i]);
  CHECK(malloc_trim(0) == 1);
  CHECK(held() < has + 64);
  CHECK(all_are(block[0], kMuch, 0x5A));
  free(block[0]);
}

/* The frees of C23, where there are any: under the library, always. */
static void sized_frees(void) {
  CHECK(dlerror() == NULL); /* that the C library has none is not told to the job */
  void (*const sized)(void*, size_t) = (void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  void (*const aligned)(void*, size_t, size_t) =
      (void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
  CHECK(sized && aligned);
  void* const ours = take(64, kLarge);
  CHECK(FAKE_SERVED(ours));
  sized(ours, kLarge);
  aligned(take(4096, kLarge), 4096, kLarge);
  sized(malloc(100), 100);
  void* const small = take(64, 100);
  CHECK(!FAKE_SERVED(small));
  aligned(small, 64, 100);
  sized(NULL, 0);
  aligned(NULL, 64, 0);
}

/* A job that tries how much it can have goes by the first refusal. */
static void more_than_there_is(void) {
  free(take(64, kLarge)); /* the core is open from here on */
  const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  for (size_t quarters = 1; quarters <= 12; ++quarters) {
    void* block = NULL;
    const int code = posix_memalign(&block, 64, machine / 4 * quarters);
    printf("%zu quarters of the machine: %d\n", quarters, code);
    if (code == 0) free(block);
  }
}

/* Enough for all that is the job's own, and not for more: in a child first, then in the process itself. */
static void limits_itself(void) {
  static const size_t limit = (size_t)4 << 30;
  void* const before = take(64, kLarge); /* the core is open from here on */
  int status = 0;
  const pid_t child = fork();
  CHECK(child == 0 || (child > 0 && waitpid(child, &status, 0) == child && status == 0));
  const struct rlimit most = {limit, limit};
  CHECK(setrlimit(RLIMIT_AS, &most) == 0);
  void* const ordinary = malloc(256 << 20);
  void* const aligned = take(64, 256 << 20);
  CHECK(ordinary && all_are(before, kLarge, 0x5A));
  errno = 0;
  CHECK(aligned_alloc(64, limit) == NULL && errno == ENOMEM);
  free(ordinary);
  free(aligned);
  free(before);
  if (child == 0) _exit(0);
}

static void* in_thread(void* kept) {
  for (int i = 0; i < 1000; ++i) free(take(64, 4096 + 64 * i));
  *(void**)kept = take(64, kLarge);
  return NULL;
}

/* Threads come and go and leave live blocks behind, which others free. */
static void threads(void) {
  free(take(64, kLarge)); /* the core is open from here on */
  for (int round = 0; round < 4; ++round) {
    pthread_t thread[4];
    void* kept[4];
    for (int i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, in_thread, &kept[i]) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < 4; ++i) {
      CHECK(all_are(kept[i], kLarge, 0x5A));
      if (round % 2) free(kept[i]);
    }
  }
}

static pthread_barrier_t together_at;
static void* takes_together(void* unused) {
  pthread_barrier_wait(&together_at);
  for (int i = 0; i < 2000; ++i) free(take(64, 4096));
  return NULL;
}

/* Threads that ask for the first time at the same moment. */
static void together(void) {
  pthread_t thread[4];
  CHECK(pthread_barrier_init(&together_at, NULL, 4) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, takes_together, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
}

static void* volatile of_outside; /* volatile: the compiler takes posix_memalign for a leaf */
static void on_signal(int signal) {
  void* const block = take(64, kLarge);
  CHECK(!FAKE_SERVED(block));
  free(block);
  if (!of_outside) return;
  errno = 0; /* how large one of ours is nobody can say now: it stays as it was */
  CHECK(realloc(of_outside, 2 * kLarge) == NULL && errno == ENOMEM);
  CHECK(all_are(of_outside, kLarge, 0x5A));
  free(of_outside); /* one of ours, while the thread is inside the core: it is taken later */
  of_outside = NULL;
}

/* Run with FAKE_CORE=signal: the handler comes while the core holds its lock. */
static void interrupted(void) {
  CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
  of_outside = take(64, kLarge);
  CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
  void* const block = take(64, kLarge);
  CHECK(FAKE_SERVED(block) && !of_outside);
  free(block);
}

static void leave(int signal) { exit(0); }

static void exit_from_handler(void) {
  CHECK(signal(SIGUSR1, leave) != SIG_ERR);
  take(64, kLarge);
  CHECK(!"the handler did not come");
}

static void* late;
static void free_late(void) {
  CHECK(FAKE_SERVED(late));
  free(late);
  free(take(64, kLarge));
}
static void at_exit(void) {
  late = take(64, kLarge);
  CHECK(atexit(free_late) == 0);
}

#ifndef STATIC_JOB
/* A library whose constructor makes the first allocation that matters: the loader's lock is held then. */
static void plugin(const char* path) {
  void* const library = dlopen(path, RTLD_NOW);
  CHECK(library);
  void** const block = dlsym(library, "plugin_block");
  CHECK(block && FAKE_SERVED(*block));
  CHECK(dlclose(library) == 0);
}
#endif

/* A thread that is to be cancelled, at the next point where that is allowed: no allocation is one. */
static void* is_cancelled(void* unused) {
  CHECK(pthread_cancel(pthread_self()) == 0);
  void* const block = take(64, kLarge);
  void* const larger = realloc(take(64, kLarge), 2 * kLarge);
  free(block);
  free(larger);
  printf("went on\n");
  fflush(stdout);
  pthread_testcancel();
  return NULL;
}

/* The first of them opens the core. */
static void cancelled(void) {
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    void* result = NULL;
    CHECK(pthread_create(&thread, NULL, is_cancelled, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  }
}

/* Run without a core, and with a stderr that nobody reads: what the line about it raises is taken back, what was on
 * its way to the job before is left, and so is the mask. Each process has one line. */
static void refused_lines(void) {
  for (int pending_before = 0; pending_before <= 1; ++pending_before) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      static sigset_t before, after; /* static: the C library need not fill all of their bytes */
      sigset_t broken_pipe, pending;
      sigemptyset(&broken_pipe);
      sigaddset(&broken_pipe, SIGPIPE);
      if (pending_before) CHECK(sigprocmask(SIG_BLOCK, &broken_pipe, NULL) == 0 && raise(SIGPIPE) == 0);
      CHECK(sigprocmask(SIG_BLOCK, NULL, &before) == 0);
      free(take(64, kLarge));
      CHECK(sigprocmask(SIG_BLOCK, NULL, &after) == 0 && memcmp(&before, &after, sizeof before) == 0);
      CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == pending_before);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

#ifdef WITH_PLUGIN
extern void* plugin_block;
#endif

/* As it is in a daemon: what is not the job's own is closed, and its numbers go to files. Whoever took one of
 * them without being asked would read and write those. */
static int take_deep(int depth) {
  volatile char page[4096]; /* of the stack: each is one that nobody has looked at yet */
  page[depth] = 0;
  if (depth == 0) free(take(64, kLarge));
  return page[depth] + (depth == 0 ? 0 : 1 + take_deep(depth - 1));
}

static void* take_deep_in_thread(void* unused) {
  for (int depth = 0; depth < 40; ++depth) CHECK(take_deep(depth) == depth);
  return NULL;
}

static void own_descriptors(void) {
  enum { kEnd = 64, kFiles = 16 };
  char byte = 0;
  CHECK(close(STDIN_FILENO) == 0 && close(STDOUT_FILENO) == 0);
  free(take(64, kLarge));
  CHECK(read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF);
  CHECK(write(STDOUT_FILENO, &byte, 1) == -1 && errno == EBADF);
  for (int fd = 0; fd < kEnd; ++fd) {
    if (fd != STDERR_FILENO) close(fd);
  }
  FILE* files[kFiles];
  for (int i = 0; i < kFiles; ++i) {
    CHECK((files[i] = tmpfile()) != NULL && write(fileno(files[i]), "0123456789", 10) == 10);
    CHECK(lseek(fileno(files[i]), 0, SEEK_SET) == 0);
  }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, take_deep_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
  take_deep_in_thread(NULL);
  for (int i = 0; i < kFiles; ++i) {
    CHECK(lseek(fileno(files[i]), 0, SEEK_CUR) == 0);
    CHECK(lseek(fileno(files[i]), 0, SEEK_END) == 10);
  }
}

static void ordinary(void) {
#ifdef WITH_PLUGIN
  CHECK(FAKE_SERVED(plugin_block));
#endif
  for (int i = 0; i < 1000; ++i) free(realloc(malloc(i + 1), 2 * i + 1));
  const int lowest = dup(STDOUT_FILENO);
  CHECK(close(lowest) == 0);
  void* const block = take(64, kLarge);
  CHECK(dup(STDOUT_FILENO) == lowest); /* no descriptor is left open */
  CHECK(dlerror() == NULL);            /* what the loader has said to the library is not told to the job */
  printf("%s\n", FAKE_SERVED(block) ? "served" : "not served");
  free(block);
  free(take(64, 16));
}

/* Iterations of a training step in miniature: activations are taken going forward, and freed going backward,
 * beside a gradient each. */
static void iterate(long count) {
  enum { kLayers = 24 };
  for (long iteration = 0; iteration < count; ++iteration) {
    unsigned char* activation[kLayers];
    for (int layer = 0; layer < kLayers; ++layer) {
      activation[layer] = take(64, (size_t)(1 + layer % 5) * kLarge + 512 * (size_t)layer);
    }
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      void* const gradient = take(64, (size_t)(2 + layer % 3) * kLarge + 512 * (size_t)layer);
      CHECK(all_are(activation[layer], kLarge, 0x5A));
      free(activation[layer]);
      free(gradient);
    }
  }
}

static sem_t memory_is_out;

/* Takes blocks until there is no memory for one more, or for what is known of it. */
static void* takes_what_is_left(void* unused) {
  enum { kMost = 1 << 16 };
  static void* blocks[kMost];
  while (sem_wait(&memory_is_out) != 0) {
  }
  int count = 0;
  while (count < kMost && posix_memalign(&blocks[count], 64, 4096) == 0) ++count;
  while (count > 0) free(blocks[--count]);
  return NULL;
}

/* The process's memory is at its end before one of its threads asks for the first time; this one has, and goes on. */
static void out_of_memory(void) {
  pthread_t thread;
  CHECK(sem_init(&memory_is_out, 0, 0) == 0 && pthread_create(&thread, NULL, takes_what_is_left, NULL) == 0);
  free(take(64, 256 << 20)); /* which the arena keeps for it */
  const struct rlimit none = {0, 0};
  CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
    while (malloc(bytes)) {
    }
  }
  CHECK(sem_post(&memory_is_out) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(sem_post(&memory_is_out) == 0);
  takes_what_is_left(NULL);
}

/* The job has what it needs, and its iteration has just been found: there may be no more for who plans it. */
static void little_memory(void) {
  iterate(2);
  const struct rlimit little = {16 << 20, 16 << 20};
  CHECK(setrlimit(RLIMIT_DATA, &little) == 0);
  iterate(3000);
}

/* Prints how many pages are resident with a large block of which one byte in 2 MiB was touched. */
static void sparse(void) {
  const size_t bytes = (size_t)256 << 20;
  volatile char* const block = memalign(64, bytes);
  for (size_t i = 0; i < bytes; i += (size_t)2 << 20) block[i] = 1;
  FILE* const file = fopen("/proc/self/statm", "r");
  long all = 0, resident = 0;
  CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &resident) == 2);
  fclose(file);
  printf("%ld\n", resident);
  free((void*)block);
}

static void* last_words(void* unused) {
  free(take(64, kLarge));
  puts("done");
  return unused;
}

/* The process ends with the last thread of those that the job has started, and with status 0. */
static void main_thread_ends(void) {
  iterate(2000);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, last_words, NULL) == 0);
  pthread_exit(NULL);
}

static void* has_outlived(void* main_thread) {
  CHECK(pthread_join(*(pthread_t*)main_thread, NULL) == 0);
  return last_words(NULL);
}

/* Nothing is served before. */
static void main_thread_ends_first(void) {
  static pthread_t main_thread;
  pthread_t thread;
  main_thread = pthread_self();
  CHECK(pthread_create(&thread, NULL, has_outlived, &main_thread) == 0);
  pthread_exit(NULL);
}

/* What a process is called by others, until it says otherwise: never the same twice. */
static void give_title(int argc, char** argv) {
  const size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
  memset(argv[0], 0, room);
  snprintf(argv[0], room, "job: %d", (int)getpid());
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  static const struct {
    const char* name;
    void (*run)(void);
  } jobs[] = {{"answers", answers},
              {"served", served},
              {"reallocate", reallocate},
              {"reallocate_large", reallocate_large},
              {"shrink_many", shrink_many},
              {"trims", trims},
              {"threads", threads},
              {"together", together},
              {"interrupted", interrupted},
              {"exit_from_handler", exit_from_handler},
              {"at_exit", at_exit},
              {"forks", forks},
              {"ordinary", ordinary},
              {"own_descriptors", own_descriptors},
              {"more_than_there_is", more_than_there_is},
              {"limits_itself", limits_itself},
              {"out_of_memory", out_of_memory},
              {"little_memory", little_memory},
              {"sized_frees", sized_frees},
              {"fork_handlers", fork_handlers},
              {"cancelled", cancelled},
              {"main_thread_ends", main_thread_ends},
              {"main_thread_ends_first", main_thread_ends_first},
              {"sparse", sparse},
              {"refused_lines", refused_lines},
#ifndef STATIC_JOB
              {"forks_beside_threads", forks_beside_threads},
              {"forks_before_opening", forks_before_opening},
              {"forks_unseen", forks_unseen},
#endif
              {"forks_in_handler", forks_in_handler}};
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; ++i) {
    if (strcmp(jobs[i].name, name) == 0) {
      jobs[i].run();
      return 0;
    }
  }
  if (strcmp(name, "iterate") == 0 && argc > 2) {
    iterate(strtol(argv[2], NULL, 10));
    return 0;
  }
  if (strcmp(name, "elsewhere") == 0 && argc > 2) {
    iterate(strtol(argv[2], NULL, 10));
    CHECK(chdir("/") == 0);
    return 0;
  }
  if (strcmp(name, "titled") == 0 && argc > 2) {
    iterate(strtol(argv[2], NULL, 10));
    give_title(argc, argv);
    return 0;
  }
#ifndef STATIC_JOB
  if (strcmp(name, "plugin") == 0 && argc > 2) {
    plugin(argv[2]);
    return 0;
  }
#endif
  fprintf(stderr, "no job is named '%s'\n", name);
  return 2;
}
