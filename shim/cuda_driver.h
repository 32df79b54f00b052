/* The driver behind our hooks: which of its calls are hooked, under which names they are asked for, and where
 * the real ones are. */
#ifndef REPRISE_SHIM_CUDA_DRIVER_H
#define REPRISE_SHIM_CUDA_DRIVER_H

#include <stdint.h>

#include "replay/abi.h"

/* The real calls. An entry that has not been found answers CUDA_ERROR_NOT_FOUND. */
extern struct reprise_cuda_calls reprise_driver;

/* Fills the entries that are still open, from the driver that is loaded. Any thread, any number of times. */
void reprise_find_driver(void);

/* Any function of the loaded driver, NULL where there is none. */
void* reprise_driver_function(const char* symbol);

/* For the dlsym stub: whether a name is one of ours to answer, and the answer. */
int reprise_is_hooked(const char* name);
void* reprise_dlsym_hooked(void* handle, const char* name);

/* What cuGetProcAddress should give in place of `found`, its own answer for this query. NULL: that is a function of a
 * later CUDA than is known here, and who calls it may free a block of ours by it, or end what we must hear of. */
void* reprise_swapped(const char* query, int version, uint64_t flags, void* found);

/* The driver's own cuGetProcAddress of either version; NULL where it has none. */
typedef int (*reprise_get_proc_fn)(const char*, void**, int, uint64_t);
typedef int (*reprise_get_proc_v2_fn)(const char*, void**, int, uint64_t, int*);
reprise_get_proc_fn reprise_driver_get_proc(void);
reprise_get_proc_v2_fn reprise_driver_get_proc_v2(void);

#endif
