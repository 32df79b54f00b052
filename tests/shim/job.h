/* What the jobs of `job NAME` share, and those of job_forks.c. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

enum { kLarge = 65536 };

static inline void* take(size_t alignment, size_t bytes) {
  void* block = NULL;
  CHECK(posix_memalign(&block, alignment, bytes) == 0);
  CHECK((uintptr_t)block % alignment == 0);
  memset(block, 0x5A, bytes);
  return block;
}

static inline int all_are(const unsigned char* bytes, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

void forks(void);
void forks_beside_threads(void);
void forks_before_opening(void);
void forks_unseen(void);
void forks_in_handler(void);
void fork_handlers(void);
