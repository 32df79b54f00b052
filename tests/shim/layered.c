/* The same name in two libraries, LAYER 1 before LAYER 0, of which the first asks for the next, as wrappers
 * of malloc do. */
#define _GNU_SOURCE
#include <dlfcn.h>

#if !LAYER
int bottom_layer; /* referred to, so that this library is linked although the name comes from the other */
#endif

int layered(void) {
#if LAYER
  int (*const next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "layered");
  return next && next != layered ? 10 * LAYER + next() : -LAYER;
#else
  return 7;
#endif
}
