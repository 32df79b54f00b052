/* Whether two names are the same. Sanitizers look names up by dlsym before their own strcmp can be called. */
#ifndef REPRISE_SHIM_SAME_NAME_H
#define REPRISE_SHIM_SAME_NAME_H

static inline int reprise_is_same_name(const char* one, const char* other) {
  while (*one && *one == *other) {
    ++one;
    ++other;
  }
  return *one == *other;
}

#endif
