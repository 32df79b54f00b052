#define _GNU_SOURCE
#include "shim/environment.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t default_threshold = 4096;

static int is(const char* name, const char* value) {
  const char* const set = getenv(name);
  return set && strcmp(set, value) == 0;
}

/* How many bits a suffix shifts by; -1: no such suffix. Sizes are binary: 4K, 4KB and 4KiB are the same. */
static int shift_of(const char* suffix) {
  static const char letters[] = "KMGTPE";
  if (!*suffix || strcmp(suffix, "B") == 0) return 0;
  const char upper = *suffix >= 'a' && *suffix <= 'z' ? *suffix - 'a' + 'A' : *suffix;
  const char* const letter = strchr(letters, upper);
  if (!letter) return -1;
  const char* const rest = suffix + 1;
  if (*rest && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0) return -1;
  return 10 * (int)(letter - letters + 1);
}

/* 0: not a size above 0. By hand, because strtoull is bound to the newest C library it is compiled with. */
static size_t parse_size(const char* text) {
  const size_t most = SIZE_MAX / 16;
  size_t bytes = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at) {
    if (bytes > most) return 0;
    bytes = 10 * bytes + (size_t)(*at - '0');
  }
  const int shift = at == text ? -1 : shift_of(at);
  if (shift < 0 || bytes > (SIZE_MAX >> 1) >> shift) return 0;
  return bytes << shift;
}

/* The C library has no environment before its own constructor has run, and a program may call us earlier. */
static int is_off_now(void) {
  if (!environ) return 1;
  const char* const disable = getenv("REPRISE_DISABLE");
  if (disable && *disable && strcmp(disable, "0") != 0) return 1;
  return is("REPRISE_MODE", "off") || getuid() != geteuid() || getgid() != getegid();
}

/* Some of a process's calls caught and others not would be two allocators that know nothing of each other. */
int reprise_is_off(void) {
  enum { unknown, on, off };
  static int known = unknown;
  int is = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (is == unknown) {
    const int now = is_off_now() ? off : on;
    if (__atomic_compare_exchange_n(&known, &is, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) is = now;
  }
  return is == off;
}

size_t reprise_threshold_from_environment(void) {
  if (is_off_now()) return SIZE_MAX;
  const char* const text = getenv("REPRISE_THRESHOLD");
  const size_t bytes = text ? parse_size(text) : 0;
  return bytes ? bytes : default_threshold;
}

int reprise_quiet(void) { return is("REPRISE_LOG", "quiet"); }
int reprise_talkative(void) { return is("REPRISE_LOG", "info"); }
