/* The hooks of libreprise.so, all generated from one list (replay/cuda_calls.def): each goes to the core, or
 * to the driver where there is none. README.md walks one allocation through. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "shim/core_library.h"
#include "shim/cuda_driver.h"
#include "shim/environment.h"
#include "shim/old_glibc.h"
#include "shim/real_dlsym.h"

#define EXPORTED __attribute__((visibility("default")))

enum { not_found = 500 };

static const struct reprise_cuda_calls first_calls;

/* Where calls go now: first_calls until the core has been asked, then the core's or the driver's. */
static const struct reprise_cuda_calls* now = &first_calls;

/* NULL while it has not been asked, or does not serve. */
static const struct reprise_cuda_core* opened;
static int stopped; /* it is to serve nothing */

static inline const struct reprise_cuda_calls* calls_now(void) {
  return __atomic_load_n(&now, __ATOMIC_ACQUIRE);
}

#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  EXPORTED int symbol parameters { return calls_now()->symbol arguments; }
#include "replay/cuda_calls.def"

/* One exported name more than the hooks: in a process with two copies of this library, all but the first find
 * here that they are not the first. */
EXPORTED void reprise_cuda_marker(void) {}
extern void own_marker(void) __attribute__((alias("reprise_cuda_marker"), visibility("hidden")));

static const struct reprise_cuda_core* load_core(void) {
  static struct reprise_cuda_shim shim;
  if (reprise_is_off()) return NULL;
  if (reprise_dlsym(RTLD_DEFAULT, "reprise_cuda_marker") != (void*)own_marker) return NULL;
  const reprise_core_open_cuda_fn open_cuda =
      (reprise_core_open_cuda_fn)reprise_core_function(REPRISE_CORE_OPEN_CUDA, reprise_dlsym);
  if (!open_cuda) return NULL;
  shim.version = REPRISE_ABI_VERSION;
  shim.size = sizeof shim;
  shim.driver = &reprise_driver;
  shim.find = reprise_driver_function;
  shim.stderr_at_start = reprise_stderr_at_start();
  shim.cpus_at_start = reprise_cpus_at_start();
  const struct reprise_cuda_core* const core = open_cuda(&shim);
  if (!core) return NULL; /* it has said why */
  if (core->version != REPRISE_ABI_VERSION || core->size < sizeof *core) {
    reprise_say("the core library is of another version", NULL);
    return NULL;
  }
  return core;
}

/* Opens the core, once a process. Other threads that arrive meanwhile pass to the driver: to wait for this
 * one could deadlock with the loader's lock. */
__attribute__((noinline, cold)) static const struct reprise_cuda_calls* first_now(void) {
  static int begun;
  const int saved = errno;
  reprise_find_driver();
  if (!__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) {
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancel); /* files are opened: a cancellation point is new */
    const struct reprise_cuda_core* const core = load_core();
    __atomic_store_n(&opened, core, __ATOMIC_SEQ_CST);
    if (core && __atomic_load_n(&stopped, __ATOMIC_SEQ_CST)) core->stop();
    __atomic_store_n(&now, core ? &core->calls : &reprise_driver, __ATOMIC_RELEASE);
    pthread_setcancelstate(cancel, NULL);
  }
  errno = saved;
  const struct reprise_cuda_calls* const calls = calls_now();
  return calls == &first_calls ? &reprise_driver : calls;
}

#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  static int first_##symbol parameters { return first_now()->symbol arguments; }
#include "replay/cuda_calls.def"

static const struct reprise_cuda_calls first_calls = {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) .symbol = first_##symbol,
#include "replay/cuda_calls.def"
};

static void stop_serving(const char* unknown) {
  if (__atomic_exchange_n(&stopped, 1, __ATOMIC_SEQ_CST)) return;
  reprise_say("this driver has a newer function than is known here", unknown);
  const struct reprise_cuda_core* const core = __atomic_load_n(&opened, __ATOMIC_SEQ_CST);
  if (core) core->stop();
}

/* The driver answers first, with its own rules and codes; what it found is swapped where it is ours. */
static void swap(const char* query, void** function, int version, uint64_t flags) {
  if (!function || !*function || reprise_is_off()) return;
  void* const ours = reprise_swapped(query, version, flags, *function);
  if (ours) {
    *function = ours;
  } else {
    stop_serving(query);
  }
}

EXPORTED int cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  const reprise_get_proc_fn driver = reprise_driver_get_proc();
  if (!driver) return not_found;
  const int result = driver(symbol, function, version, flags);
  if (result == 0) swap(symbol, function, version, flags);
  return result;
}

EXPORTED int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                                 int* status) {
  const reprise_get_proc_v2_fn driver = reprise_driver_get_proc_v2();
  if (!driver) return not_found;
  const int result = driver(symbol, function, version, flags, status);
  if (result == 0) swap(symbol, function, version, flags);
  return result;
}
