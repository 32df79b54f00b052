/* A core that serves nothing: it passes every call of the driver on, and says at exit how many of each came
 * through the preload library. FAKE_CORE, a word, makes it misbehave:
 *   refuse  will not serve
 *   newer   answers with a version that the thin library does not know
 *   thread  waits, while it is being opened, for a thread that calls the driver
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/abi.h"

static const struct reprise_cuda_calls* driver;

#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  static unsigned long count_##symbol;                             \
  static int symbol parameters {                                   \
    __atomic_fetch_add(&count_##symbol, 1, __ATOMIC_RELAXED);      \
    return driver->symbol arguments;                               \
  }
#include "replay/cuda_calls.def"

static void stop(void) { fprintf(stderr, "fake core: stopped\n"); }

static int told(const char* word) {
  const char* const set = getenv("FAKE_CORE");
  return set && strcmp(set, word) == 0;
}

static void* call_driver(void* unused) {
  size_t free_bytes, total;
  int (*const ask)(size_t*, size_t*) = (int (*)(size_t*, size_t*))dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
  return ask && ask(&free_bytes, &total) != 0 ? unused : NULL; /* no context is current here */
}

__attribute__((visibility("default"))) const struct reprise_cuda_core* reprise_core_open_cuda(
    const struct reprise_cuda_shim* shim) {
  static struct reprise_cuda_core core = {REPRISE_ABI_VERSION,
                                          sizeof core,
                                          {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) .symbol = symbol,
#include "replay/cuda_calls.def"
                                          },
                                          stop};
  if (shim->version != REPRISE_ABI_VERSION || shim->size < sizeof *shim || told("refuse")) return NULL;
  if (told("newer")) core.version = REPRISE_ABI_VERSION + 1;
  if (told("thread")) {
    pthread_t thread;
    void* answered = NULL;
    if (pthread_create(&thread, NULL, call_driver, &core) != 0 || pthread_join(thread, &answered) != 0 ||
        !answered)
      return NULL;
  }
  driver = shim->driver;
  fprintf(stderr, "fake core: opened\n");
  return &core;
}

__attribute__((destructor)) static void say(void) {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  if (count_##symbol) fprintf(stderr, "fake core: %s %lu\n", #symbol, count_##symbol);
#include "replay/cuda_calls.def"
}
