/* A malloc that has nothing to give from a call on, the one that NO_MALLOC_FROM numbers. Aligned memory it leaves to the
 * C library: jobs that take nothing else go on. */
#include <errno.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);

static long calls, last;

__attribute__((constructor)) static void begin(void) {
  const char* const from = getenv("NO_MALLOC_FROM");
  last = from ? strtol(from, NULL, 10) : 0;
}

static int has_one_more(void) {
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < last || last == 0) return 1;
  errno = ENOMEM;
  return 0;
}

void* malloc(size_t bytes) { return has_one_more() ? __libc_malloc(bytes) : NULL; }
void* calloc(size_t count, size_t bytes) { return has_one_more() ? __libc_calloc(count, bytes) : NULL; }
