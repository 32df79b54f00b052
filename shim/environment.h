/* What the thin library itself reads from the environment. The core reads the rest, and complains about what
 * neither can use. */
#ifndef REPRISE_SHIM_ENVIRONMENT_H
#define REPRISE_SHIM_ENVIRONMENT_H

#include <stddef.h>

/* Nothing is to be caught: REPRISE_DISABLE is set to anything but 0, REPRISE_MODE is off, there is no
 * environment (yet), or the program runs with more rights than its caller. */
int reprise_is_off(void);

/* REPRISE_THRESHOLD, from how many bytes on allocations are caught (> 0; 4 KiB by default). SIZE_MAX where
 * Reprise is off. */
size_t reprise_threshold_from_environment(void);

/* REPRISE_LOG=quiet. */
int reprise_quiet(void);

/* REPRISE_LOG=info: what is no fault is said too. */
int reprise_talkative(void);

#endif
