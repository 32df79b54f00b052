#define _GNU_SOURCE
#include "shim/cuda_driver.h"

#include "shim/environment.h"
#include "shim/old_glibc.h"
#include "shim/real_dlsym.h"
#include "shim/same_name.h"

/* A driver of a later CUDA may mean something else by the names we know: so it does where it has another function. A minor
 * release may do that, as 13.1 did with cuLaunchHostFunc and 13.4 with cuGraphAddNode; what the list names is the same in
 * all headers up to this version. */
enum { newest_known_cuda = 13050, not_found = 500, per_thread_default_stream = 2 };
enum { ANY, PER_THREAD };

#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) \
  static int missing_##symbol parameters { return not_found; }
#include "replay/cuda_calls.def"

struct reprise_cuda_calls reprise_driver = {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments) .symbol = missing_##symbol,
#include "replay/cuda_calls.def"
};

static struct {
  int (*cuGetProcAddress)(const char*, void**, int, uint64_t);
  int (*cuGetProcAddress_v2)(const char*, void**, int, uint64_t, int*);
} lookups;

#define CALL(symbol, query, since, streams, parameters, arguments) extern int symbol parameters;
#include "replay/cuda_calls.def"

struct hook {
  const char* symbol;
  const char* query;
  int since;
  int streams;
  void* ours;
  void* missing; /* what `driver` holds until it is found */
  void** driver;
  int spared; /* nothing goes wrong where it is not caught */
};

static const struct hook hooks[] = {
#define LOOKUP(symbol, query, since, streams, parameters, arguments) \
  {#symbol, query, since, streams, (void*)symbol, NULL, (void**)&lookups.symbol, 0},
#define HOOK(symbol, query, since, streams, spared)                                                        \
  {#symbol, query, since, streams, (void*)symbol, (void*)missing_##symbol, (void**)&reprise_driver.symbol, \
   spared},
#define CALL(symbol, query, since, streams, parameters, arguments) HOOK(symbol, query, since, streams, 0)
#define AGAIN(symbol, query, since, streams, parameters, arguments) HOOK(symbol, query, since, streams, 1)
#include "replay/cuda_calls.def"
};
#define HOOK_COUNT (sizeof hooks / sizeof *hooks)

static const struct hook* hook_named(const char* name) {
  for (size_t i = 0; i < HOOK_COUNT; ++i) {
    if (reprise_is_same_name(hooks[i].symbol, name)) return &hooks[i];
  }
  return NULL;
}

/* Who probes for the driver closes it again; the functions that are remembered must outlive that, and need not all be
 * of one library. */
static void keep_library_of(void* function) {
  Dl_info info;
  if (!dlopen || !dladdr) return;
  if (dladdr(function, &info) && info.dli_fname) dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* The first that is found stays: every later one is the same function. */
static void remember(const struct hook* hook, void* found) {
  void* missing = hook->missing;
  if (found && found != hook->ours &&
      __atomic_compare_exchange_n(hook->driver, &missing, found, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    keep_library_of(found);
  }
}

static void* known(const struct hook* hook) {
  void* const found = __atomic_load_n(hook->driver, __ATOMIC_ACQUIRE);
  return found == hook->missing ? NULL : found;
}

/* By its usual name, else by the file that one of its functions was found in. Never loads anything. */
static void* driver_library(void) {
  if (!dlopen || !dlclose || !dladdr) return NULL;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  for (size_t i = 0; !library && i < HOOK_COUNT; ++i) {
    Dl_info info;
    if (known(&hooks[i]) && dladdr(known(&hooks[i]), &info) && info.dli_fname) {
      library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
  }
  return library;
}

void* reprise_driver_function(const char* symbol) {
  void* const library = driver_library();
  void* const found = library ? reprise_dlsym(library, symbol) : reprise_dlsym(RTLD_NEXT, symbol);
  if (library && dlclose) dlclose(library); /* only the count that dlopen has raised */
  if (!found && dlerror) dlerror();
  return found;
}

void reprise_find_driver(void) {
  for (size_t i = 0; i < HOOK_COUNT; ++i) {
    if (!known(&hooks[i])) remember(&hooks[i], reprise_driver_function(hooks[i].symbol));
  }
}

int reprise_is_hooked(const char* name) {
  return name && name[0] == 'c' && name[1] == 'u' && hook_named(name);
}

/* What a library that was loaded in a scope of its own finds there by RTLD_DEFAULT: in itself and in what it is
 * linked with. `caller` is an address within it. */
static void* found_beside(void* caller, const char* name) {
  Dl_info info;
  if (!dlopen || !dlclose || !dladdr || !dladdr(caller, &info) || !info.dli_fname) return NULL;
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library ? reprise_dlsym(library, name) : NULL;
  if (library) dlclose(library); /* only the count that dlopen has raised */
  if (found && dlerror) dlerror();
  return found;
}

/* dlsym.S jumps here, so that the return address is that of who called dlsym. */
void* reprise_dlsym_hooked(void* handle, const char* name) {
  const struct hook* const hook = hook_named(name);
  void* found = reprise_dlsym(handle, name);
  /* The program's own scope has our export in it, and without us would not. */
  if (found == hook->ours) found = reprise_dlsym(RTLD_NEXT, name);
  if (!found && handle == RTLD_DEFAULT) {
    found = found_beside(__builtin_return_address(0), name);
    /* Once more, for its error: to open and close a library has taken that away. */
    if (!found) found = reprise_dlsym(RTLD_NEXT, name);
  }
  if (!found || found == hook->ours) return NULL;
  if (reprise_is_off()) return found;
  remember(hook, found);
  return hook->ours;
}

/* What the driver answers to who asks for the newest version that we know. */
static void* found_as_known(const char* query, uint64_t flags) {
  const reprise_get_proc_v2_fn driver = reprise_driver_get_proc_v2();
  void* found = NULL;
  int status;
  return driver && driver(query, &found, newest_known_cuda, flags, &status) == 0 ? found : NULL;
}

void* reprise_swapped(const char* query, int version, uint64_t flags, void* found) {
  if (!query) return found;
  const struct hook* best = NULL;
  for (size_t i = 0; i < HOOK_COUNT; ++i) {
    const struct hook* const hook = &hooks[i];
    if (hook->since > version || !reprise_is_same_name(hook->query, query)) continue;
    if (hook->streams == PER_THREAD && !(flags & per_thread_default_stream)) continue;
    if (!best || hook->since > best->since || (hook->since == best->since && hook->streams > best->streams))
      best = hook;
  }
  if (!best) return found;
  if (version > newest_known_cuda && found != found_as_known(query, flags))
    return best->spared ? found : NULL;
  remember(best, found);
  return best->ours;
}

reprise_get_proc_fn reprise_driver_get_proc(void) {
  if (!lookups.cuGetProcAddress) reprise_find_driver();
  return lookups.cuGetProcAddress;
}

reprise_get_proc_v2_fn reprise_driver_get_proc_v2(void) {
  if (!lookups.cuGetProcAddress_v2) reprise_find_driver();
  return lookups.cuGetProcAddress_v2;
}
