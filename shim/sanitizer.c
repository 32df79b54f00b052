#include "shim/sanitizer.h"

static int started;

__attribute__((constructor)) static void note_that_it_has_started(void) { started = 1; }

/* Of one that comes later, with a plugin, the order would be wrong without us too, and it ends the program. */
const char* __asan_default_options(void) { /* NOLINT(bugprone-reserved-identifier,cert-*) */
  return started ? "" : "verify_asan_link_order=0";
}
