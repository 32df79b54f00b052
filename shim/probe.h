/* Does a free of our block come back to us?
 *
 * A program may define some of the hooked functions itself (a malloc of its own without posix_memalign, a
 * sanitizer), and its definitions come before ours. Then a block of ours would end in a foreign free, so we
 * must not serve at all. Comparing addresses cannot tell (a program's own stub may stand for our function);
 * calling can: each hook is called through its global name with NULL, and says here that it was reached.
 */
#ifndef REPRISE_SHIM_PROBE_H
#define REPRISE_SHIM_PROBE_H

#include <stddef.h>

/* How many hooks were reached on this thread: with an address that is ours, and NULL, or for memory while the core was
 * being opened. */
extern __thread int reprise_probe_hits __attribute__((tls_model("initial-exec")));

/* Whether every function that takes a block reaches us. NULL is made ours before. */
int reprise_blocks_come_back(void);

/* Whether malloc asks us for a block of this size, as a program's own may that is made of aligned allocations. The C
 * library calls malloc with locks held (setlocale's), under which no core can be opened: what goes wrong there is
 * worded by gettext, which takes the same. */
int reprise_malloc_comes_to_us(size_t bytes);

#endif
