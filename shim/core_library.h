/* libreprise_core.so: found beside this library, opened, and asked for one function. */
#ifndef REPRISE_SHIM_CORE_LIBRARY_H
#define REPRISE_SHIM_CORE_LIBRARY_H

typedef void* (*reprise_lookup_fn)(void* handle, const char* name); /* dlsym */

/* The core's function of that name, or NULL after saying why. */
void* reprise_core_function(const char* name, reprise_lookup_fn lookup);

/* One line to stderr: what stands in the way, and that memory is left as it is. */
void reprise_say(const char* what, const char* detail);

#endif
