/* Jobs that make children, in every way that there is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/fake_core.h"
#include "tests/shim/job.h"

void forks(void) {
  void* const block = take(64, kLarge);
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(all_are(block, kLarge, 0x5A));
    void* const own = take(64, kLarge);
    free(own);
    char* const argument[] = {"job", "served", NULL};
    execv("/proc/self/exe", argument);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  free(block);
}

#ifndef STATIC_JOB
static void* in_endless_thread(void* unused) {
  for (size_t i = 0;; ++i) free(take(64, 4096 + 64 * (i % 1000)));
  return NULL;
}

static void fork_and_wait_served(int served) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20); /* ends it where it would wait for ever */
    _exit((FAKE_SERVED(take(64, kLarge)) != 0) != served);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static int next_library(struct dl_phdr_info* info, size_t bytes, void* unused) { return 0; }

/* Children that ask the loader, as importing and exceptions do, while other threads allocate. */
void forks_beside_threads(void) {
  free(take(64, kLarge));
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_endless_thread, NULL) == 0);
  }
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20); /* ends it where it would wait for ever */
      dl_iterate_phdr(next_library, NULL);
      _exit(dlopen("libm.so.6", RTLD_NOW) == NULL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

static void* walks_libraries(void* unused) {
  for (;;) dl_iterate_phdr(next_library, NULL);
  return NULL;
}

/* Children whose first allocation is the first of all, beside a thread that holds a lock of the loader's most of the
 * time. A child of one thread alone is a process like any other. */
void forks_before_opening(void) {
  fork_and_wait_served(1);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, walks_libraries, NULL) == 0);
  for (int i = 0; i < 100; ++i) fork_and_wait_served(0);
}

static void* makes_children_unseen(void* inherited) {
  /* From here on this thread has a heap of the C library's to itself. The other threads' locks are held in a child
   * made this way for ever, without us too. */
  free(malloc(1));
  for (int i = 0; i < 100; ++i) {
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20); /* ends it where it would wait for ever */
      CHECK(all_are(inherited, kLarge, 0x5A));
      free(inherited);
      free(take(64, kLarge));
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  return NULL;
}

/* Children that nobody was told of, made while other threads are inside: what they free and take comes to an
 * end. */
void forks_unseen(void) {
  void* const inherited = take(64, kLarge);
  pthread_t thread;
  for (int i = 0; i < 3; ++i) CHECK(pthread_create(&thread, NULL, in_endless_thread, NULL) == 0);
  CHECK(pthread_create(&thread, NULL, makes_children_unseen, inherited) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}
#endif

static void* asked_about;
static size_t answers_in_fork[2];
static int forks_begun;
static void ask_in_fork(void) { answers_in_fork[forks_begun++ % 2] = malloc_usable_size(asked_about); }

static void fork_and_wait(int signal) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* Run with FAKE_CORE=signal: a handler forks while the core holds its lock. The job's fork handlers get no
 * answer then, for the core cannot give one; in a fork from outside they do. */
void forks_in_handler(void) {
  CHECK(pthread_atfork(ask_in_fork, NULL, NULL) == 0);
  CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
  asked_about = take(64, kLarge);
  CHECK(signal(SIGUSR1, fork_and_wait) != SIG_ERR);
  void* const block = take(64, kLarge);
  CHECK(FAKE_SERVED(block) && forks_begun == 1 && answers_in_fork[0] == 0);
  CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
  fork_and_wait(0);
  CHECK(forks_begun == 2 && answers_in_fork[1] >= kLarge);
  free(block);
  free(asked_about);
}

static pthread_mutex_t of_job = PTHREAD_MUTEX_INITIALIZER;
static void* of_handlers[3];

static void grow(void** block) {
  CHECK(malloc_usable_size(*block) >= kLarge);
  CHECK(realloc(*block, kLarge) == *block);
  *block = realloc(*block, 2 * kLarge);
  CHECK(*block && all_are(*block, kLarge, 0x5A));
}

static void before_fork_of_job(void) {
  CHECK(pthread_mutex_lock(&of_job) == 0);
  grow(&of_handlers[0]);
}
static void after_fork_of_job(void) {
  grow(&of_handlers[1]);
  CHECK(pthread_mutex_unlock(&of_job) == 0);
}

static void* grows_under_lock(void* unused) {
  for (;;) {
    CHECK(pthread_mutex_lock(&of_job) == 0);
    void* block = take(64, kLarge);
    grow(&block);
    CHECK(pthread_mutex_unlock(&of_job) == 0);
    free(block);
  }
  return NULL;
}

/* The job has fork handlers of its own, which grow blocks, and wait for a thread that does. */
void fork_handlers(void) {
  alarm(60); /* ends it where it would wait for ever */
  CHECK(pthread_atfork(before_fork_of_job, after_fork_of_job, after_fork_of_job) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, grows_under_lock, NULL) == 0);
  for (int i = 0; i < 200; ++i) {
    for (size_t k = 0; k < 3; ++k) of_handlers[k] = take(64, kLarge);
    const pid_t child = fork();
    CHECK(child >= 0);
    grow(&of_handlers[2]);
    if (child == 0) _exit(0);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (size_t k = 0; k < 3; ++k) free(of_handlers[k]);
  }
}
