/* The dlsym behind ours. This library exports a dlsym of its own, so it cannot ask by that name. */
#ifndef REPRISE_SHIM_REAL_DLSYM_H
#define REPRISE_SHIM_REAL_DLSYM_H

typedef void* (*reprise_dlsym_fn)(void* handle, const char* name);

/* NULL until it has been looked for; the stub jumps there. */
extern reprise_dlsym_fn reprise_real_dlsym;

/* Looks for it: the first definition in the libraries loaded after this one, which is what RTLD_NEXT would
 * find. NULL where there is none (an old system, and nobody has loaded libdl yet). */
reprise_dlsym_fn reprise_find_dlsym(void);

/* Asks it, from here: RTLD_NEXT means the libraries after this one. */
void* reprise_dlsym(void* handle, const char* name);

#endif
