/* libreprise_core.so: found beside this library, opened, and asked for one function. */
#ifndef REPRISE_SHIM_CORE_LIBRARY_H
#define REPRISE_SHIM_CORE_LIBRARY_H

#include "replay/abi.h"

typedef void* (*reprise_lookup_fn)(void* handle, const char* name); /* dlsym */

/* The core's function of that name, or NULL after saying why. */
void* reprise_core_function(const char* name, reprise_lookup_fn lookup);

/* As it was when this library was loaded. */
struct reprise_stderr reprise_stderr_at_start(void);
const struct reprise_cpus* reprise_cpus_at_start(void);

/* One line to stderr, if that is still the same: what stands in the way, and that memory is left as it is. */
void reprise_say(const char* what, const char* detail);

#endif
